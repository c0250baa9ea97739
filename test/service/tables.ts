import { ACCOUNTS } from './accounts.ts';
import { ASSETS } from './assets.ts';
import { PACKAGES } from './packages.ts';
import { PRODUCTS } from './products.ts';
import type { Row } from './row.ts';

/** The tables by the names of their files. */
export const TABLES: Readonly<Record<string, readonly Row[]>> = {
  assets: ASSETS,
  packages: PACKAGES,
  accounts: ACCOUNTS,
  products: PRODUCTS,
};
