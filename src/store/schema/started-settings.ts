/** A digest for each variable that differs from its default; all variables of a sink or a channel have one. */
export type SettingDigests = Readonly<Record<string, string>>;

/** What a process tells about its settings while it holds a lease. */
export interface StartedSettings {
  readonly settings: SettingDigests;
  /** Variables of its `.env` that it was not started with as they are now. */
  readonly changed: readonly string[];
}

/** Names the variables in which two sets of settings differ. */
export function differing(one: SettingDigests, other: SettingDigests): string[] {
  return Object.keys({ ...one, ...other }).filter((name) => one[name] !== other[name]);
}

/**
 * Names the settings that a process was not started with as they are now, in its `.env` or in a command.
 * @param own the settings of the command. One that it does not have proves nothing: it may run elsewhere.
 */
export function otherSettings(
  { settings, changed = [] }: Partial<StartedSettings>,
  own: SettingDigests = {},
): string[] {
  const others = settings === undefined ? [] : differing(settings, own).filter((name) => own[name] !== undefined);
  return [...new Set([...changed, ...others])].sort();
}
