import type { AssetFields } from 'catchword-client/assets/asset-request';
import { Command } from 'commander';
import type { CommandContext } from './shared/command-context.ts';
import { type FieldsInput, readFields, withFieldOptions } from './shared/field-options.ts';
import { colours, plain } from './shared/output-format.ts';
import { type CallResult, type Service, serviceCommand, withoutBody } from './shared/service-connection.ts';

interface AssetOptions extends FieldsInput {
  readonly force?: boolean;
  readonly create?: boolean;
  readonly allowInternal?: boolean;
}

const ASSET_HELP = `
Without a vbid, the asset is created and the service assigns its identifier: store it. To create an asset, imprint_id and
title are required. Fields are checked before the request is sent, unless --force leaves that to the service.

Fields: author_name, author_first_name, author_last_name, title, subtitle, description, imprint_id, kind, language,
edition, copyright_date, publication_date, on_sale_date, off_sale_date, e_isbn, print_isbn, parent_isbn, identifiers,
related_products, prices, variants, sales_rights, copy_drm_limit, print_drm_limit, cs_plus_discount_code, fro,
fulfillment_only, sampleable, login_url, url, callback_url. Each price requires currency, type and amount, and if it is a
rental a duration. With --allow-internal also: asset_status, block_search, custom, discount_codes, epub_page_labels, floe,
vcs_authored. The interface does not say whether prices and other lists replace those of the asset: send all of them.

In --set, write numbers and booleans as they are, and objects and arrays as JSON. null removes a date; in a text field it
is text. A number in a field that is not listed here is sent as text: use --file to send it as a number.

  catchword asset put --set imprint_id=5 --set title="A title" --set print_drm_limit=-1
  catchword asset put 9781402894626 --set off_sale_date=2026-12-31 --set identifiers.e_isbn_13='["9781402894626"]'
  catchword asset put 9781402894626 --set off_sale_date=null
  catchword asset put 9781402894626 --file asset.json`;

function named(context: CommandContext, vbid: string, title: string | undefined): string {
  const shown = colours(context).bold(plain(vbid));
  return title === undefined ? shown : `${shown} ${plain(title)}`;
}

async function putAsset(
  context: CommandContext,
  { caller, signal }: Service,
  vbid: string | undefined,
  options: AssetOptions,
): Promise<CallResult> {
  // Loaded here: the schemas of all fields take a while to build.
  const { ASSET_FORMS, STRUCTURED_FIELDS } = await import('catchword-client/assets/asset-request');
  const { createAssets } = await import('catchword-client/assets/assets');
  const { create, allowInternal, force } = options;
  // In other fields, `null` is text.
  const takesNull = (name: string) => ASSET_FORMS.get(name)?.safeParse(null).success;
  const isJson = (name: string) =>
    STRUCTURED_FIELDS.has(name) || takesNull(name) || (force === true && !ASSET_FORMS.has(name));
  const fields = (await readFields(options, isJson, context)) as AssetFields;
  const how = { create, allowInternal, unchecked: force, signal };
  const asset = await createAssets(caller).put(vbid ?? null, fields, how);
  const verb = vbid === undefined ? 'created' : 'saved';
  const text = [`${verb} ${named(context, asset.vbid, asset.title)}`];
  if (vbid === undefined) text.push('The service assigned this identifier: store it, it names the asset.');
  const callback = fields.callback_url === undefined ? '' : ', and to call callback_url afterwards';
  if (fields.url !== undefined) text.push(`The service was asked to ingest its file${callback}.`);
  return { done: `${verb} ${plain(asset.vbid)}`, json: { vbid: asset.vbid, asset: asset.raw }, text };
}

/** Makes the command that prints a book as the service describes it. */
function getCommand(context: CommandContext): Command {
  const command = new Command('get').argument('<vbid>');
  return serviceCommand(context, command, async ({ caller, config, signal }, vbid: string) => {
    const { createBooks } = await import('catchword-client/assets/books');
    const { raw, title, vbid: known = vbid } = await createBooks(caller, config.booksPath).read(vbid, { signal });
    return { json: raw, text: [named(context, known, title), JSON.stringify(raw, null, 2)] };
  });
}

function assetCommand(context: CommandContext): Command {
  const group = new Command('asset').enablePositionalOptions();
  const put = withFieldOptions(group.command('put').description('create an asset, or change one'))
    .argument('[vbid]', 'its identifier; omit it to create an asset')
    .option('--create', 'create the asset under the given identifier: imprint_id and title are required')
    .option('--allow-internal', "send fields that only the service's own systems can set")
    .option('--force', 'send the fields unchecked, and let the service judge them')
    .addHelpText('after', ASSET_HELP);
  serviceCommand(context, put, (service, vbid: string | undefined, options: AssetOptions) =>
    putAsset(context, service, vbid, options),
  );
  const about = 'show an asset as the service describes it (reads CATCHWORD_BOOKS_PATH)';
  return group.addCommand(getCommand(context).description(about));
}

const BOOK_HELP = `
Without a vbid, the book is created and the service assigns its identifier: store it. The interface does not show the
fields of a book, so none is checked or required; the sandbox takes those of an asset (see catchword asset put --help). The
operations are at CATCHWORD_BOOKS_PATH. --set sends text, and JSON in the fields of an asset that are objects or arrays; use
--file to send numbers and booleans.

  catchword book put --set imprint_id=5 --set title="A title"
  catchword book put 9781402894626 --file book.json`;

async function putBook(
  context: CommandContext,
  { caller, config, signal }: Service,
  vbid: string | undefined,
  input: FieldsInput,
): Promise<CallResult> {
  const { STRUCTURED_FIELDS } = await import('catchword-client/assets/asset-request');
  const { createBooks } = await import('catchword-client/assets/books');
  const fields = await readFields(input, (name) => STRUCTURED_FIELDS.has(name), context);
  const books = createBooks(caller, config.booksPath);
  if (vbid === undefined) {
    const book = await books.create(fields, { signal });
    const head = `created ${named(context, book.vbid, book.title)}`;
    const text = [head, 'The service assigned this identifier: store it, it names the book.'];
    return { done: `created ${plain(book.vbid)}`, json: book.raw, text };
  }
  const { raw, title } = await books.update(vbid, fields, { signal });
  if (Object.keys(raw).length === 0) return withoutBody(`sent the change of ${vbid}`);
  return { done: `saved ${vbid}`, json: raw, text: `saved ${named(context, vbid, title)}` };
}

function bookCommand(context: CommandContext): Command {
  const group = new Command('book').enablePositionalOptions();
  const put = withFieldOptions(group.command('put').description('create a book, or change one'))
    .argument('[vbid]', 'its identifier; omit it to create a book')
    .addHelpText('after', BOOK_HELP);
  serviceCommand(context, put, (service, vbid: string | undefined, input: FieldsInput) =>
    putBook(context, service, vbid, input),
  );
  return group.addCommand(getCommand(context).description('show a book as the service describes it'));
}

export function assetCommands(context: CommandContext): Command[] {
  return [assetCommand(context), bookCommand(context)];
}
