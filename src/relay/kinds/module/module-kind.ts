import { pathToFileURL } from 'node:url';
import type { SinkFactory } from '../../sink.ts';
import { pathOf } from '../../sink-options.ts';
import type { SinkKind } from '../sink-kind.ts';

async function factoryOf(specifier: string): Promise<SinkFactory> {
  const { createSink } = (await import(specifier)) as { readonly createSink?: SinkFactory };
  if (typeof createSink !== 'function') throw new Error('it does not export a function createSink');
  return createSink;
}

/** A module of the user. */
export const moduleKind: SinkKind = {
  schemes: ['module:'],
  stores: 'what your module does',
  identity: 'path and all options',
  options: {},
  isPath: true,
  isForeign: true,
  address: pathOf,
  identifiedBy: ({ searchParams }) =>
    [...searchParams]
      .map((option) => option.join('='))
      .sort()
      .join('&'),
  unrepairable: 'its module has no apply',
  load: (url) => factoryOf(pathToFileURL(pathOf(url)).href),
};
