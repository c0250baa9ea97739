import { Command } from 'commander';
import type { Package, PackageFields } from '../client/packages/package-fields.ts';
import type { Packages } from '../client/packages/packages.ts';
import { CatchwordError } from '../errors.ts';
import { callService } from './shared/connection.ts';
import type { CommandContext } from './shared/context.ts';
import { type FieldsInput, readFields, withFieldOptions } from './shared/fields.ts';
import { plain } from './shared/format.ts';

interface Options extends FieldsInput {
  readonly json?: boolean;
}

const STRUCTURED = new Set(['products', 'tags', 'download_license', 'online_license']);

const FIELDS_HELP = `
Fields seen at services: name, description, publisher, list_price, library_id, products, tags, download_license and
online_license ({"type": "numdays", "num_days": 180}, absdate or perpetual). Other fields are sent unchecked.`;

/** Calls an operation of packages and prints the package that it returns. @param verb past tense, if it writes */
async function call(
  context: CommandContext,
  sku: string,
  options: Options,
  verb: string | null,
  operation: (packages: Packages, how: { readonly signal: AbortSignal }) => Promise<Package>,
): Promise<void> {
  const done = (made: Package): string => `${verb} package ${plain(made.sku ?? sku)}`;
  await callService(context, options, {
    call: async ({ caller }, { packagesPath }, signal) => {
      const { createPackages } = await import('../client/packages/packages.ts');
      return await operation(createPackages(caller, packagesPath), { signal });
    },
    ...(verb !== null && { done }),
    json: ({ raw }) => raw,
    text: (made) => [
      verb === null ? `package ${sku}` : done(made),
      ...(Object.keys(made.raw).length > 0 ? [JSON.stringify(made.raw, null, 2)] : []),
    ],
  });
}

/** Adds the SKU of the command line to the fields. */
function withSku(sku: string, fields: PackageFields): PackageFields {
  if (fields.sku === undefined || fields.sku === sku) return { ...fields, sku };
  throw new CatchwordError('USAGE', `the fields name another SKU than ${sku}`, {
    hint: 'Remove sku from the fields, or use the same SKU.',
  });
}

function getCommand(context: CommandContext): Command {
  return new Command('get')
    .description('show a package as the service describes it')
    .argument('<sku>')
    .option('--json', 'print one JSON document')
    .action((sku: string, options: Options) =>
      call(context, sku, options, null, (packages, how) => packages.read(sku, how)),
    );
}

function writeCommand(context: CommandContext, verb: 'create' | 'update', description: string): Command {
  return withFieldOptions(new Command(verb).description(description))
    .argument('<sku>')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `${verb === 'create' ? '\nServices require name and products (its books).' : ''}${FIELDS_HELP}

  catchword package ${verb} BUNDLE-1 --set name="A bundle" --set products='["9781402894626"]'`,
    )
    .action(async (sku: string, options: Options) => {
      const fields = (await readFields(options, (name) => STRUCTURED.has(name), context.signal)) as PackageFields;
      await call(context, sku, options, `${verb}d`, (packages, how) =>
        verb === 'create' ? packages.create(withSku(sku, fields), how) : packages.update(sku, fields, how),
      );
    });
}

function deleteCommand(context: CommandContext): Command {
  return new Command('delete')
    .description('delete a package; its books are kept')
    .argument('<sku>')
    .option('--json', 'print one JSON document')
    .action((sku: string, options: Options) =>
      callService(context, options, {
        call: async ({ caller }, { packagesPath }, signal) => {
          const { createPackages } = await import('../client/packages/packages.ts');
          await createPackages(caller, packagesPath).delete(sku, { signal });
        },
        done: () => `deleted package ${sku}`,
        json: () => ({ deleted: sku }),
        text: () => `deleted package ${sku}; its books are kept`,
      }),
    );
}

export function packageCommand(context: CommandContext): Command {
  return new Command('package')
    .description('create, change, show and delete packages (books sold as one SKU)')
    .enablePositionalOptions()
    .addCommand(getCommand(context))
    .addCommand(writeCommand(context, 'create', 'create a package'))
    .addCommand(writeCommand(context, 'update', 'change a package; services append the products given'))
    .addCommand(deleteCommand(context));
}
