import { Command } from 'commander';
import type { Package, PackageFields } from '../client/packages/package-fields.ts';
import type { Packages } from '../client/packages/packages.ts';
import { CatchwordError } from '../errors.ts';
import { withService } from './shared/connection.ts';
import type { CommandContext } from './shared/context.ts';
import { collected, type FieldsInput, readFields } from './shared/fields.ts';
import { plain, printJson, printLine } from './shared/format.ts';

interface WriteOptions extends FieldsInput {
  readonly json?: boolean;
}

const STRUCTURED = new Set(['products', 'tags', 'download_license', 'online_license']);

async function withPackages(context: CommandContext, work: (packages: Packages) => Promise<void>): Promise<void> {
  // Not loaded with every other command: see asset.ts.
  const { createPackages } = await import('../client/packages/packages.ts');
  await withService(context, ({ caller }, { packagesPath }) => work(createPackages(caller, packagesPath)));
}

function print(context: CommandContext, done: string, { raw }: Package, options: { readonly json?: boolean }): void {
  if (options.json === true) {
    printJson(context, raw);
    return;
  }
  printLine(context, done);
  if (Object.keys(raw).length > 0) printLine(context, JSON.stringify(raw, null, 2));
}

/** The SKU stands in the path; one in the fields must be the same. */
function withSku(sku: string, fields: PackageFields): PackageFields {
  if (fields.sku === undefined || fields.sku === sku) return { ...fields, sku };
  throw new CatchwordError('USAGE', `the fields name another SKU than ${sku}`, {
    hint: 'Leave sku out of the fields, or give the same.',
  });
}

function getCommand(context: CommandContext): Command {
  return new Command('get')
    .description('what the service says of a package')
    .argument('<sku>')
    .option('--json', 'print one JSON document')
    .action((sku: string, options: { readonly json?: boolean }) =>
      withPackages(context, async (packages) => {
        print(context, `package ${sku}`, await packages.read(sku, { signal: context.signal }), options);
      }),
    );
}

function writeCommand(context: CommandContext, verb: 'create' | 'update', description: string): Command {
  return new Command(verb)
    .description(description)
    .argument('<sku>')
    .option('--file <path>', 'the fields as a JSON object; - reads stdin')
    .option('--set <field=value>', 'one field; may be repeated, and goes before the file', collected, [])
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `${verb === 'create' ? '\nServices need name and products, the books in it.' : ''}
Fields seen at services: name, description, publisher, list_price, library_id, products, tags, download_license and
online_license ({"type": "numdays", "num_days": 180}, absdate or perpetual). Others are sent as they are.

  catchword package ${verb} BUNDLE-1 --set name="A bundle" --set products='["9781402894626"]'`,
    )
    .action(async (sku: string, options: WriteOptions) => {
      const { signal } = context;
      const fields = (await readFields(options, (name) => STRUCTURED.has(name), context)) as PackageFields;
      await withPackages(context, async (packages) => {
        const made =
          verb === 'create'
            ? await packages.create(withSku(sku, fields), { signal })
            : await packages.update(sku, fields, { signal });
        const done = `${verb}d package ${plain(made.sku ?? sku)}`;
        context.wrote(done);
        print(context, done, made, options);
      });
    });
}

function deleteCommand(context: CommandContext): Command {
  return new Command('delete')
    .description('delete a package; the books in it stay')
    .argument('<sku>')
    .option('--json', 'print one JSON document')
    .action((sku: string, options: { readonly json?: boolean }) =>
      withPackages(context, async (packages) => {
        await packages.delete(sku, { signal: context.signal });
        context.wrote(`deleted package ${sku}`);
        if (options.json === true) printJson(context, { deleted: sku });
        else printLine(context, `deleted package ${sku}; the books in it stay`);
      }),
    );
}

export function packageCommand(context: CommandContext): Command {
  return new Command('package')
    .description('create, change, read and delete packages: books sold as one SKU')
    .enablePositionalOptions()
    .addCommand(getCommand(context))
    .addCommand(writeCommand(context, 'create', 'create a package'))
    .addCommand(writeCommand(context, 'update', 'change a package; services append the products given'))
    .addCommand(deleteCommand(context));
}
