import type { Config } from '@catchword/settings/config';
import type { Command } from 'commander';
import { settingDigests } from '../../../operate/setting-digests.ts';
import { otherSettingsTexts, serversOf } from '../../../report/status-report.ts';
import { lookAt } from '../../../store/file/mirror-path.ts';
import type { Store } from '../../../store/store.ts';
import { withMirror } from '../../roles/open-mirror.ts';
import { loadSettings, usableSettings } from './checked-settings.ts';
import type { CommandContext } from './command-context.ts';
import { type JsonOption, print, type Result } from './output-format.ts';

/** `look`: reads, and shows what it can before it reports settings that are wrong. */
type Access = 'look' | 'read' | 'write';

/** Loads the settings, and opens the mirror while `work` runs. */
export async function onMirror<T>(
  context: CommandContext,
  access: Access,
  work: (store: Store, config: Config) => T | Promise<T>,
): Promise<T> {
  const config = loadSettings(context, 'nothing');
  return await withMirror(config, access !== 'write', (store) => work(store, config));
}

/** Says which settings of this command the running processes of a mirror were not started with. */
export function settingsNotInUse({ clock, environment }: CommandContext, store: Store): string[] {
  return otherSettingsTexts(serversOf(store, clock.now(), settingDigests(environment)));
}

/**
 * Completes a command that prints what `work` returns.
 * @param work also gets the arguments of the command, and its options
 */
export function mirrorCommand<Given extends readonly unknown[]>(
  context: CommandContext,
  access: Access,
  command: Command,
  work: (store: Store, config: Config, ...given: Given) => Result | Promise<Result>,
  jsonHelp = 'print one JSON document',
): Command {
  return command.option('--json', jsonHelp).action(async (...given: unknown[]) => {
    const workOn = (store: Store, config: Config) => work(store, config, ...(given as unknown as Given));
    if (access !== 'look') return print(context, command.opts<JsonOption>(), await onMirror(context, access, workOn));
    const config = usableSettings(context.environment);
    // Of settings that are wrong, and name no mirror, only the error is of use.
    if (lookAt(config.db) === undefined) loadSettings(context, 'nothing');
    print(context, command.opts<JsonOption>(), await withMirror(config, true, (store) => workOn(store, config)));
    loadSettings(context, 'nothing');
  });
}
