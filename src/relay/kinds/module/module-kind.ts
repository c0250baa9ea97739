import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { SinkFactory } from '@catchword/sink-kit/sink';
import type { SinkKind } from '@catchword/sink-kit/sink-kind';
import { pathOf } from '@catchword/sink-kit/sink-options';

async function factoryOf(specifier: string): Promise<SinkFactory> {
  const { createSink } = (await import(specifier)) as { readonly createSink?: SinkFactory };
  if (typeof createSink !== 'function') throw new Error('it does not export a function createSink');
  return createSink;
}

/** A module of the user. Any of its options may tell one store from another. */
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

/** The kind of any other address, for which the user names a module. @param name a package, or a path that begins with `.` or `/` */
export function kindOfModule(name: string): { readonly kind: string; readonly found: SinkKind } {
  const found: SinkKind = {
    ...moduleKind,
    isPath: false,
    address: ({ protocol, host, pathname }) => `${protocol}//${host}${pathname}`,
    load: () => factoryOf(/^[./]/.test(name) ? pathToFileURL(resolve(name)).href : name),
  };
  return { kind: 'module', found };
}
