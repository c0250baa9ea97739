let isRequired = false;

/**
 * Makes the process end with `process.exit`. At its natural end Node.js closes databases that are still open, and it waits
 * for open sockets.
 */
export function requireForcedExit(): void {
  if (!isRequired) process.once('beforeExit', () => process.exit());
  isRequired = true;
}

/** Whether the process must call `process.exit` when its work is done. */
export function isForcedExitRequired(): boolean {
  return isRequired;
}
