import { Command } from 'commander';
import type { Package, PackageFields } from '../client/packages/package-fields.ts';
import type { Packages } from '../client/packages/packages.ts';
import { usageError } from '../errors.ts';
import { type CallResult, callService } from './shared/connection.ts';
import type { CommandContext } from './shared/context.ts';
import { type FieldsInput, readFields, withFieldOptions } from './shared/fields.ts';
import { type JsonOption, plain } from './shared/format.ts';

const STRUCTURED = new Set(['products', 'tags', 'download_license', 'online_license']);

const FIELDS_HELP = `
Fields seen at services: name, description, publisher, list_price, library_id, products, tags, download_license and
online_license ({"type": "numdays", "num_days": 180}, absdate or perpetual). Other fields are sent unchecked. Services
require name and products (its books) to create a package.

  catchword package create BUNDLE-1 --set name="A bundle" --set products='["9781402894626"]'`;

function withSku(sku: string, fields: PackageFields): PackageFields {
  if (fields.sku === undefined || fields.sku === sku) return { ...fields, sku };
  throw usageError(`the fields name another SKU than ${sku}`, 'Remove sku from the fields, or use the same SKU.');
}

function described(head: string, { raw }: Package): CallResult {
  const fields = Object.keys(raw).length > 0 ? [JSON.stringify(raw, null, 2)] : [];
  return { json: raw, text: [head, ...fields] };
}

export function packageCommand(context: CommandContext): Command {
  const { signal } = context;
  async function call(options: JsonOption, work: (packages: Packages) => Promise<CallResult>): Promise<void> {
    const { createPackages } = await import('../client/packages/packages.ts');
    await callService(context, options, ({ caller }, { packagesPath }) => work(createPackages(caller, packagesPath)));
  }
  const group = new Command('package').enablePositionalOptions();
  const add = (name: string, description: string): Command =>
    group.command(name).description(description).argument('<sku>');
  function addWrite(verb: 'create' | 'update', description: string): void {
    withFieldOptions(add(verb, description))
      .option('--json', 'print one JSON document')
      .addHelpText('after', FIELDS_HELP)
      .action(async (sku: string, options: FieldsInput & JsonOption) => {
        const fields = (await readFields(options, (name) => STRUCTURED.has(name), context)) as PackageFields;
        await call(options, async (packages) => {
          const written =
            verb === 'create'
              ? await packages.create(withSku(sku, fields), { signal })
              : await packages.update(sku, fields, { signal });
          const done = `${verb}d package ${plain(written.sku ?? sku)}`;
          return { ...described(done, written), done };
        });
      });
  }

  add('get', 'show a package as the service describes it')
    .option('--json', 'print one JSON document')
    .action((sku: string, options: JsonOption) =>
      call(options, async (packages) => described(`package ${sku}`, await packages.read(sku, { signal }))),
    );
  addWrite('create', 'create a package');
  addWrite('update', 'change a package; services append the products given');
  add('delete', 'delete a package; its books are kept')
    .option('--json', 'print one JSON document')
    .action((sku: string, options: JsonOption) =>
      call(options, async (packages) => {
        await packages.delete(sku, { signal });
        const done = `deleted package ${sku}`;
        return { done, json: { deleted: sku }, text: `${done}; its books are kept` };
      }),
    );
  return group;
}
