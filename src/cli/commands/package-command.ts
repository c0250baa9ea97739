import { usageError } from '@catchword/base/errors';
import type { Package, PackageFields } from 'catchword-client/packages/package-fields';
import type { Packages } from 'catchword-client/packages/packages';
import { Command } from 'commander';
import type { CommandContext } from './shared/command-context.ts';
import { type FieldsInput, readFields, withFieldOptions } from './shared/field-options.ts';
import { plain } from './shared/output-format.ts';
import { type CallResult, serviceCommand, withoutBody } from './shared/service-connection.ts';

const STRUCTURED = new Set(['products', 'tags', 'download_license', 'online_license']);

const FIELDS_HELP = `
Fields seen at services: name, description, publisher, list_price, library_id, products, tags, download_license and
online_license ({"type": "numdays", "num_days": 180}, {"type": "absdate", "expiration_date": "2027-01-01"}, or perpetual).
Other fields are sent unchecked, and with --force all of them. Which fields a service requires is not documented; name is
required by the sandbox. --set sends text, and JSON in products, tags and the licenses; use --file to send a number.

  catchword package create BUNDLE-1 --set name="A bundle" --set products='["9781402894626"]'`;

const DELETE_HELP = `
The interface calls this operation the deletion of the package. Live services take the books that the request lists out of
the package instead, and answer how many they were. The command prints what the service answers.

  catchword package delete BUNDLE-1
  catchword package delete BUNDLE-1 --set products='["9781402894626"]'`;

function withSku(sku: string, fields: PackageFields): PackageFields {
  if (fields.sku === undefined || fields.sku === sku) return { ...fields, sku };
  throw usageError(`the fields name another SKU than ${sku}`, 'Remove sku from the fields, or use the same SKU.');
}

function described(head: string, { raw }: Package): CallResult {
  const fields = Object.keys(raw).length > 0 ? [JSON.stringify(raw, null, 2)] : [];
  return { json: raw, text: [head, ...fields] };
}

interface WriteOptions extends FieldsInput {
  readonly force?: boolean;
}

export function packageCommand(context: CommandContext): Command {
  const { signal } = context;
  function complete<Options>(
    command: Command,
    work: (packages: Packages, sku: string, options: Options) => Promise<CallResult>,
  ): void {
    serviceCommand(context, command, async ({ caller, config }, sku: string, options: Options) => {
      const { createPackages } = await import('catchword-client/packages/packages');
      return await work(createPackages(caller, config.packagesPath), sku, options);
    });
  }
  const group = new Command('package').enablePositionalOptions();
  const add = (name: string, description: string): Command =>
    group.command(name).description(description).argument('<sku>');
  const fieldsOf = async (input: FieldsInput) => await readFields(input, (name) => STRUCTURED.has(name), context);
  function addWrite(verb: 'create' | 'update', description: string): void {
    const command = withFieldOptions(add(verb, description))
      .option('--force', 'send the fields unchecked, and let the service judge them')
      .addHelpText('after', FIELDS_HELP);
    complete(command, async (packages, sku, { force, ...input }: WriteOptions) => {
      const fields = (await fieldsOf(input)) as PackageFields;
      const how = { signal, unchecked: force };
      const written =
        verb === 'create' ? await packages.create(withSku(sku, fields), how) : await packages.update(sku, fields, how);
      if (Object.keys(written.raw).length === 0) return withoutBody(`sent the ${verb} of package ${sku}`);
      const done = `${verb}d package ${plain(written.sku ?? sku)}`;
      return { ...described(done, written), done };
    });
  }

  complete(add('get', 'show a package as the service describes it'), async (packages, sku) =>
    described(`package ${sku}`, await packages.read(sku, { signal })),
  );
  addWrite('create', 'create a package');
  addWrite('update', 'change a package; services append the products given');
  const remove = add('delete', 'send the deletion of a package, and print what the service answers');
  complete(withFieldOptions(remove).addHelpText('after', DELETE_HELP), async (packages, sku, input: FieldsInput) => {
    const fields = input.file === undefined && input.set === undefined ? undefined : await fieldsOf(input);
    const answer = await packages.delete(sku, { signal, fields });
    const done = `sent the deletion of package ${sku}`;
    if (answer === null) return withoutBody(done);
    return { done, json: answer, text: [`${done}; the service answered:`, JSON.stringify(answer, null, 2)] };
  });
  return group;
}
