import { Command } from 'commander';
import type { AssetFields, checkAsset } from '../client/assets/asset-request.ts';
import { withService } from './shared/connection.ts';
import type { CommandContext } from './shared/context.ts';
import { collected, type FieldsInput, readFields } from './shared/fields.ts';
import { colours, plain, printJson, printLine } from './shared/format.ts';

/** The schemas of all fields take a while to make, and every other command can do without. */
const parts = {
  request: () => import('../client/assets/asset-request.ts'),
  assets: () => import('../client/assets/assets.ts'),
  books: () => import('../client/assets/books.ts'),
};

interface PutOptions extends FieldsInput {
  readonly create?: boolean;
  readonly allowInternal?: boolean;
  readonly json?: boolean;
}

const PUT_HELP = `
Without a vbid the asset is created, and the service makes its identifier: store it. Fields are checked before anything
is sent. In --set, numbers and booleans are written as they are, objects and arrays as JSON; null takes a date away, and
in a field of text is a text like any other:

  catchword asset put --set imprint_id=5 --set title="A title" --set print_drm_limit=-1
  catchword asset put 9781402894626 --set off_sale_date=2026-12-31 --set identifiers.e_isbn_13='["9781402894626"]'
  catchword asset put 9781402894626 --set off_sale_date=null
  catchword asset put 9781402894626 --file asset.json`;

/** On one line. */
function named(context: CommandContext, vbid: string, title: string | undefined): string {
  const shown = colours(context, context.stdout).bold(plain(vbid));
  return title === undefined ? shown : `${shown} ${plain(title)}`;
}

/** Null takes such a field away. Elsewhere `null` is a text like any other. */
function takesNull(name: string, check: typeof checkAsset): boolean {
  try {
    check({ [name]: null }, { create: false, allowInternal: true });
    return true;
  } catch {
    return false;
  }
}

function putCommand(context: CommandContext): Command {
  return new Command('put')
    .description('create an asset, or change one')
    .argument('[vbid]', 'its identifier; without one, it is created')
    .option('--file <path>', 'the fields as a JSON object; - reads stdin')
    .option('--set <field=value>', 'one field; may be repeated, and goes before the file', collected, [])
    .option('--create', 'the asset is new, although it has an identifier: imprint_id and title are needed')
    .option('--allow-internal', "send fields that only the service's own systems can set")
    .option('--json', 'print one JSON document')
    .addHelpText('after', PUT_HELP)
    .action(async (vbid: string | undefined, options: PutOptions) => {
      const [request, { createAssets }] = await Promise.all([parts.request(), parts.assets()]);
      const isJson = (name: string) => request.STRUCTURED_FIELDS.has(name) || takesNull(name, request.checkAsset);
      // Read first: what is wrong with it does not depend on the service.
      const fields = (await readFields(options, isJson, context)) as AssetFields;
      await withService(context, async ({ caller }) => {
        const { create, allowInternal } = options;
        const asset = await createAssets(caller).put(vbid ?? null, fields, {
          ...{ allowInternal, signal: context.signal },
          ...(create === true && { create }),
        });
        const verb = vbid === undefined ? 'created' : 'saved';
        context.wrote(`${verb} ${plain(asset.vbid)}`);
        if (options.json === true) {
          printJson(context, { vbid: asset.vbid, asset: asset.raw });
          return;
        }
        printLine(context, `${verb} ${named(context, asset.vbid, asset.title)}`);
        if (vbid === undefined) printLine(context, 'The service made this identifier: store it, it names the asset.');
        if (fields.url === undefined) return;
        const told = fields.callback_url === undefined ? '' : '; callback_url is told when that ends';
        printLine(context, `Its file is being ingested${told}.`);
      });
    });
}

function getCommand(context: CommandContext): Command {
  return new Command('get')
    .description('what the service says of an asset (reads it as a book, CATCHWORD_BOOKS_PATH)')
    .argument('<vbid>')
    .option('--json', 'print one JSON document')
    .action((vbid: string, options: { readonly json?: boolean }) =>
      withService(context, async ({ caller }, { booksPath }) => {
        const { createBooks } = await parts.books();
        const asset = await createBooks(caller, booksPath).read(vbid, { signal: context.signal });
        if (options.json === true) {
          printJson(context, asset.raw);
          return;
        }
        printLine(context, named(context, asset.vbid ?? vbid, asset.title));
        printLine(context, JSON.stringify(asset.raw, null, 2));
      }),
    );
}

export function assetCommand(context: CommandContext): Command {
  return new Command('asset')
    .description('create, change and read assets of the service')
    .enablePositionalOptions()
    .addCommand(putCommand(context))
    .addCommand(getCommand(context));
}
