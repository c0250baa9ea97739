import { nearestName } from '@catchword/base/nearest-name';
import { BELONGING, isNamed } from './config.ts';
import type { Environment } from './environment.ts';
import { OPTIONS } from './option-table.ts';

const PREFIX = /^catchword[_-]/i;

function withoutPrefix(name: string): string {
  return name.replace(PREFIX, '').toLowerCase();
}

function suggestion(name: string, known: readonly string[]): string {
  // Without the prefix, which makes any two names look alike.
  const nearest = nearestName(withoutPrefix(name), known.map(withoutPrefix));
  const upper = name.toUpperCase();
  const named = upper !== name && isNamed(upper) ? upper : undefined;
  const meant = named ?? (nearest === undefined ? undefined : `CATCHWORD_${nearest.toUpperCase()}`);
  return meant === undefined ? 'It is ignored.' : `It is ignored. Did you mean ${meant}?`;
}

/** A sentence for each variable that looks like a setting but is not one, with the nearest known name. */
export function unknownSettings(environment: Environment): string[] {
  const known = Object.values(OPTIONS).flatMap(({ env, secret }) => (secret ? [env, `${env}_FILE`] : [env]));
  // pm2 sets a variable named like the process, whose name is in `name`.
  const isOwn = (one: string) => PREFIX.test(one) && one !== environment.name && environment[one];
  const given = Object.keys(environment).filter(isOwn);
  const named = given.filter((name) => isNamed(name) && !BELONGING.test(name));
  return given.flatMap((name) => {
    if (known.includes(name)) return [];
    if (!isNamed(name)) return [`${name} is not a setting. ${suggestion(name, known)}`];
    const [, owner] = BELONGING.exec(name) ?? [];
    if (owner === undefined || environment[owner] || environment[`${owner}_FILE`]) return [];
    return [`${name} belongs to ${owner}, which is not set. ${suggestion(owner, named)}`];
  });
}
