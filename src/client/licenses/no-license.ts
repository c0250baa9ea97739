import type { XmlElement } from '../../xml/read.ts';
import { CODE, ERROR, STATUS, TEXT, WRAPPER } from '../errors/error-names.ts';
import { isNoError, isSuccessCode, readsAsSuccess } from '../errors/success-words.ts';
import { attribute } from '../http/xml-records.ts';

/*
 * What stands beside licenses, or in their place (interface, 4.2). An answer without licenses says "not licensed" only
 * where nothing in it could say otherwise: counts, words of success, identifiers and times, and what was asked for.
 */

const COUNT = /^(?:distributable|total)_products$/;

/** The counts are attributes of an element of their own or of the root, or elements. */
export function countIn(elements: readonly XmlElement[], name: string): number | undefined {
  for (const element of elements) {
    const text = element.name === name ? element.text : attribute(element, name);
    const count = text !== null && /^\d+$/.test(text) ? Number(text) : countIn(element.children, name);
    if (count !== undefined) return count;
  }
  return undefined;
}

/** What tells how the request went. */
function isOutcome(name: string): boolean {
  return [/^success$/i, STATUS, TEXT, WRAPPER].some((known) => known.test(name));
}

/** What was asked for, and how XML is read. */
const ASKED = /^(?:sku|isbn|type|license_type|xml(?:ns)?(?::.*)?|xsi:.*)$/;
/** An identifier, a number or a time: one word with a digit in it. */
const DATUM = /^(?=\D*\d)\S+$/;

/** Whether what stands under a name says nothing that could be why there are no licenses. */
function isHarmless(name: string, text: string): boolean {
  if (text === '') return true;
  if (COUNT.test(name)) return /^\d+$/.test(text);
  if (CODE.test(name)) return isSuccessCode(text);
  if (ERROR.test(name)) return isNoError(text);
  return isOutcome(name) ? readsAsSuccess(text) : ASKED.test(name) || DATUM.test(text);
}

/** What may stand in place of licenses: how many there are, or that all is well. */
function isKnown({ name, attributes }: XmlElement): boolean {
  const isCounts = COUNT.test(name) || [...attributes.keys()].some((one) => COUNT.test(one));
  const isTold = CODE.test(name) || ERROR.test(name) || isOutcome(name);
  return isCounts || isTold || /^(?:licenses|summary)$/.test(name);
}

function isSilent(element: XmlElement, isInRoot: boolean): boolean {
  const { name, text, attributes, children } = element;
  // Who was asked for.
  if (name === 'user') return true;
  const isInside = isInRoot || name === 'licenses';
  // In the root, what is unknown may be licenses of another form.
  if (isInside && !isKnown(element)) return false;
  const isWell = name === 'licenses' ? readsAsSuccess(text) : isHarmless(name, text);
  return (
    isWell &&
    [...attributes].every(([one, value]) => isHarmless(one, value)) &&
    children.every((child) => isSilent(child, isInside))
  );
}

/**
 * Whether elements hold nothing that could be why there are no licenses.
 * @param isInRoot whether the root `licenses` was left out
 */
export function saysNothing(elements: readonly XmlElement[], isInRoot: boolean): boolean {
  return elements.every((element) => isSilent(element, isInRoot));
}
