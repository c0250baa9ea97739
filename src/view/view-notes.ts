import { hasCode } from '@catchword/base/errors';
import { readerView } from './view.ts';

/** A comparison of a column, or of a member of the product, with a number. */
const WITH_NUMBER = /(\b[a-z_]+|body\s*->>\s*'[^']+')\s*(?:[<>]=?|BETWEEN\b)\s*[-+]?\d/gi;
const FOLDS = /\b(lower|upper|like)\b/i;

/** How many of the products have a text where an expression reads a number. */
function textsOf(operand: string, bodies: readonly string[]): number {
  try {
    const view = readerView({ where: `typeof(${operand}) = 'text'` });
    return bodies.filter((body) => view?.of('', body) !== null).length;
  } catch (error) {
    // A name of a part of the expression, such as `v` of json_each, is not one of the product.
    if (hasCode(error, 'USAGE')) return 0;
    throw error;
  }
}

/** Says where SQLite compares otherwise than a person may expect. @param bodies some products, which show what they have */
export function viewNotes(expression: string, bodies: readonly string[]): string[] {
  const operands = new Set([...expression.matchAll(WITH_NUMBER)].map(([, operand = '']) => operand));
  const notes = [...operands].flatMap((operand) => {
    const count = textsOf(operand, bodies);
    const cast = `a text is greater than every number: write CAST(${operand} AS REAL)`;
    return count === 0 ? [] : `${operand} is a text in ${count}, and ${cast}`;
  });
  const letter = FOLDS.test(expression) ? /[^\p{ASCII}]/u.exec(expression) : null;
  if (letter !== null) notes.push(`lower, upper and LIKE do not fold ${letter[0]}, only the letters A to Z`);
  return notes;
}
