import { CatchwordError, messageOf, systemCodeOf } from './errors.ts';
import { OPTIONAL_DEPENDENCIES, OPTIONAL_PACKAGES } from './version.ts';

const NAME = /^Cannot find (?:package|module) '((?:@[^/']+\/)?[^/']+)/;

/** Makes PACKAGE_MISSING of an error about an optional package that is not installed or compiled; else returns it. */
export function explainMissing(error: unknown): unknown {
  if (messageOf(error).startsWith('Could not locate the bindings file')) {
    const hint =
      'npm did not run its install script, or the installation was copied from another system. Allow it, and run it: npm pkg set --json allowScripts.better-sqlite3=true && npm rebuild better-sqlite3.';
    return new CatchwordError('PACKAGE_MISSING', 'the package better-sqlite3 is not compiled', { hint, cause: error });
  }
  if (systemCodeOf(error) === 'ERR_DLOPEN_FAILED') {
    // Node.js breaks its lines anywhere, and ends with the advice of the hint.
    const [said = ''] = messageOf(error).replaceAll(/\s+/g, ' ').split(' Please try');
    const hint =
      'Node.js was upgraded, or the installation was copied from another system. Compile it again where it is installed: npm rebuild better-sqlite3. If that changes nothing, this user may not read it, or its disk is mounted with noexec.';
    const what = `the package better-sqlite3 does not fit Node.js ${process.version} or this system: ${said}`;
    return new CatchwordError('PACKAGE_MISSING', what, { hint, cause: error });
  }
  if (!/^(ERR_)?MODULE_NOT_FOUND$/.test(systemCodeOf(error) ?? '')) return error;
  const name = NAME.exec(messageOf(error))?.[1] ?? '';
  if (!Object.hasOwn(OPTIONAL_PACKAGES, name)) return error;
  const one = `npm install ${name}@${OPTIONAL_PACKAGES[name]}`;
  const hint = Object.hasOwn(OPTIONAL_DEPENDENCIES, name)
    ? `Install everything that catchword can use: npm install --include=optional. Only this package: ${one}.`
    : `Install it: ${one}.`;
  return new CatchwordError('PACKAGE_MISSING', `the package ${name} is not installed`, { hint, cause: error });
}
