import { ASSETS } from './assets.ts';
import { BOOKS } from './books.ts';
import { CREDENTIALS } from './credentials.ts';
import { ERRORS } from './errors.ts';
import { LICENSE_ROWS } from './licenses.ts';
import { PACKAGES } from './packages.ts';
import { PRODUCTS } from './products.ts';
import type { Row } from './row.ts';
import { USER_ROWS } from './users.ts';

/** The tables by the names of their files. */
export const TABLES: Readonly<Record<string, readonly Row[]>> = {
  assets: ASSETS,
  books: BOOKS,
  packages: PACKAGES,
  users: USER_ROWS,
  credentials: CREDENTIALS,
  licenses: LICENSE_ROWS,
  products: PRODUCTS,
  errors: ERRORS,
};
