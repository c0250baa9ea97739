/** A position in the change log, as readers note it. Absent parts are null. */
export interface Position {
  readonly incarnation: string | null;
  readonly seq: number;
  /** When the change was recorded, milliseconds since 1970. */
  readonly at: number | null;
}

/** @returns null for anything but `<seq>`, `<incarnation>:<seq>` (the id of an event) or `<incarnation>:<seq>:<time>` */
export function parsePosition(text: string): Position | null {
  const [, incarnation = null, digits = '', time] = /^(?:([\w-]{1,64}):)?(\d{1,16})(?::(\d{1,16}))?$/.exec(text) ?? [];
  const seq = Number(digits);
  if (digits === '' || !Number.isSafeInteger(seq) || (incarnation === null && time !== undefined)) return null;
  return { incarnation, seq, at: time === undefined ? null : Number(time) };
}
