import { Command } from 'commander';
import { getCommand, named } from './asset-command.ts';
import type { CommandContext } from './shared/command-context.ts';
import { type FieldsInput, readFields, withFieldOptions } from './shared/field-options.ts';
import { type JsonOption, plain } from './shared/output-format.ts';
import { callService } from './shared/service-connection.ts';

const PUT_HELP = `
Without a vbid, the book is created and the service assigns its identifier: store it. The interface does not show the
fields of a book, so none is checked or required; the sandbox takes those of an asset (see catchword asset put --help). The
operations are at CATCHWORD_BOOKS_PATH. --set sends text, and JSON in the fields of an asset that are objects or arrays; use
--file to send numbers and booleans.

  catchword book put --set imprint_id=5 --set title="A title"
  catchword book put 9781402894626 --file book.json`;

async function put(
  context: CommandContext,
  vbid: string | undefined,
  options: FieldsInput & JsonOption,
): Promise<void> {
  const { STRUCTURED_FIELDS } = await import('../../client/assets/asset-request.ts');
  const { createBooks } = await import('../../client/assets/books.ts');
  const fields = await readFields(options, (name) => STRUCTURED_FIELDS.has(name), context);
  await callService(context, options, async ({ caller }, { booksPath }, signal) => {
    const books = createBooks(caller, booksPath);
    if (vbid === undefined) {
      const book = await books.create(fields, { signal });
      const head = `created ${named(context, book.vbid, book.title)}`;
      const text = [head, 'The service assigned this identifier: store it, it names the book.'];
      return { done: `created ${plain(book.vbid)}`, json: book.raw, text };
    }
    const { raw, title } = await books.update(vbid, fields, { signal });
    const isEmpty = Object.keys(raw).length === 0;
    const done = isEmpty ? `sent the change of ${vbid}` : `saved ${vbid}`;
    if (isEmpty) return { done, json: null, text: `${done}; the service accepted it with an empty answer` };
    return { done, json: raw, text: `saved ${named(context, vbid, title)}` };
  });
}

export function bookCommand(context: CommandContext): Command {
  const group = new Command('book').enablePositionalOptions();
  withFieldOptions(group.command('put').description('create a book, or change one'))
    .argument('[vbid]', 'its identifier; omit it to create a book')
    .option('--json', 'print one JSON document')
    .addHelpText('after', PUT_HELP)
    .action((vbid: string | undefined, options: FieldsInput & JsonOption) => put(context, vbid, options));
  return group.addCommand(getCommand(context).description('show a book as the service describes it'));
}
