let isRequired = false;

/** Makes the process end with `process.exit`: else Node.js closes databases that are open, and waits for open sockets. */
export function requireForcedExit(): void {
  if (!isRequired) process.once('beforeExit', () => process.exit());
  isRequired = true;
}

/** Whether the process must call `process.exit` when its work is done. */
export function isForcedExitRequired(): boolean {
  return isRequired;
}
