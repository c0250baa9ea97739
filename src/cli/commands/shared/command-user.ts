import { hostname, userInfo } from 'node:os';

/** The user who runs a command, as decisions name them. */
export function commandUser(): string {
  let user: string;
  try {
    user = userInfo().username;
  } catch {
    // In a container, a user id may have no name.
    user = `uid ${process.getuid?.() ?? 'unknown'}`;
  }
  return `command, ${user}@${hostname()}`;
}
