import type { ComponentChildren } from 'preact';
import * as z from 'zod';
import type { Range } from '../../store/schema/queries.ts';
import { RANGE } from '../list-filters.ts';
import { parameters, parseParameters } from '../parameters.ts';

/* Lists of pages: a form with the filters that /api has, and links to more of the same. Both work without JavaScript. */

type Filters = Readonly<Record<string, z.ZodType>>;

/** What the address of a list asks for. */
export interface Asked<F extends Filters> {
  readonly only: Range & z.infer<z.ZodObject<F>>;
  /** The filters as they are in the address, without empty ones. */
  readonly given: Readonly<Record<string, string>>;
  /** Whether it is the beginning of the list, the newest first. */
  readonly isNewest: boolean;
}

/** Reads the filters and the range of an address. A form sends what is left empty, too. @throws CatchwordError USAGE */
export function askedFor<F extends Filters>(query: URLSearchParams, filters: F): Asked<F> {
  const read = (names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, query.get(name)?.trim() ?? '']).filter(([, text]) => text !== ''));
  const given = read(Object.keys(filters));
  const range = read(Object.keys(RANGE));
  const parsed = parseParameters(parameters({ ...filters, ...RANGE }), { ...given, ...range });
  if ('error' in parsed) throw parsed.error;
  return { only: parsed.value as Asked<F>['only'], given, isNewest: Object.keys(range).length === 0 };
}

/** What is declared of a filter: its name, what it does, and the values that it may have; without them it is any text. */
function declared(filter: z.ZodType) {
  const inner = filter instanceof z.ZodOptional ? (filter.unwrap() as z.ZodType) : filter;
  const { title, description, examples } = { ...inner.meta(), ...filter.meta() };
  const values = inner instanceof z.ZodEnum ? inner.options.map(String) : (examples as string[] | undefined);
  return { title, description, values };
}

function Field({ name, filter, value }: { readonly name: string; readonly filter: z.ZodType; readonly value: string }) {
  const { title, description, values } = declared(filter);
  return (
    <span title={description}>
      <label for={`filter-${name}`}>{title}</label>{' '}
      {values === undefined ? (
        <input id={`filter-${name}`} name={name} value={value} size={12} />
      ) : (
        <select id={`filter-${name}`} name={name}>
          {/* An address may have a value that cannot be chosen, such as two of them. */}
          {[...new Set(['', ...values, value])].map((one) => (
            <option value={one} selected={one === value}>
              {one || 'any'}
            </option>
          ))}
        </select>
      )}
    </span>
  );
}

interface FormProps {
  readonly path: string;
  readonly filters: Filters;
  readonly given: Readonly<Record<string, string>>;
  readonly children?: ComponentChildren;
}

/** A form for each filter: what is chosen becomes the address. */
export function FilterForm({ path, filters, given, children }: FormProps) {
  return (
    <form class="search" method="get" action={path}>
      {Object.entries(filters).map(([name, filter]) => (
        <Field name={name} filter={filter} value={given[name] ?? ''} />
      ))}
      {children}
      <button type="submit">Filter</button>
    </form>
  );
}

interface ListProps<F extends Filters> {
  /** What is listed: `runs`. */
  readonly name: string;
  readonly path: string;
  readonly filters: F;
  readonly asked: Asked<F>;
  /** The number where the list goes on; null if it has ended. */
  readonly next: number | null;
  readonly children: ComponentChildren;
}

/** A list with its filters, and links to its other parts. */
export function List<F extends Filters>({ name, path, filters, asked, next, children }: ListProps<F>) {
  const { given, isNewest, only } = asked;
  const isRising = only.after !== undefined;
  const at = (range: Readonly<Record<string, string>>) => addressOf(path, { ...given, ...range });
  return (
    <>
      <FilterForm path={path} filters={filters} given={given}>
        {isRising && <input type="hidden" name="after" value="0" />}
      </FilterForm>
      {children}
      <nav class="pages" aria-label={`Pages of the ${name}`}>
        {!isNewest && <a href={at({})}>{`Newest ${name}`}</a>}
        {only.after !== 0 && <a href={at({ after: '0' })}>{`Oldest ${name}`}</a>}
        {next !== null && (
          <a href={at({ [isRising ? 'after' : 'before']: `${next}` })}>{`${isRising ? 'Newer' : 'Older'} ${name}`}</a>
        )}
      </nav>
    </>
  );
}

/** The address of a part of a list. */
export function addressOf(path: string, given: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(given).toString();
  return query === '' ? path : `${path}?${query}`;
}

/** Cuts a list to a page. @param found one more than the page has, if there is more */
export function pageOf<Of>(found: readonly Of[], most: number, numberOf: (of: Of) => number) {
  const shown = found.slice(0, most);
  const last = shown.at(-1);
  return { shown, next: found.length > most && last !== undefined ? numberOf(last) : null };
}
