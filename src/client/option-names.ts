import { CatchwordError, toErrorRecord } from '../errors.ts';
import { OPTIONS } from '../option-table.ts';
import type { Caller } from './http/requester.ts';

/*
 * What goes wrong is said in the names of the environment, which commands read. Who uses the library sets options: for
 * them the same is said in the names of these.
 */

/** Options of `createClient` whose name is not the setting's; `perPage` and a few others are options of a call. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  userReference: 'reference',
  requestTimeoutMs: 'timeoutMs',
  concurrency: 'connections',
};

const NAMES = new Map(Object.entries(OPTIONS).map(([name, { env }]) => [env, OTHER_NAMES[name] ?? name]));

function renamed(text: string): string {
  return text
    .replace(/\bCATCHWORD_[A-Z0-9_]+/g, (env) => NAMES.get(env) ?? env)
    .replaceAll('catchword user create', 'users.create');
}

/** The same error, in the names of options. */
export function inOptionNames(error: unknown): unknown {
  if (!(error instanceof CatchwordError)) return error;
  const message = renamed(error.message);
  const hint = renamed(error.hint ?? '');
  if (message === error.message && hint === (error.hint ?? '')) return error;
  return new CatchwordError(error.code, message, {
    ...toErrorRecord(error),
    ...(hint !== '' && { hint }),
    ...(error.cause !== undefined && { cause: error.cause }),
  });
}

/** Does `work`; what it throws is said in the names of options. */
export async function withOptionNames<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw inOptionNames(error);
  }
}

/** A caller that says what goes wrong in the names of options. */
export function callerInOptionNames(caller: Caller): Caller {
  return {
    origin: caller.origin,
    json: (call) => withOptionNames(() => caller.json(call)),
    xml: (call, read) => withOptionNames(() => caller.xml(call, read)),
  };
}
