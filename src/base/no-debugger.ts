import { close, url } from 'node:inspector';

/**
 * Prevents that SIGUSR1 opens Node's debugger, with which every local user could run code in this process. Node 20 has no
 * option for that. A debugger that the signal opened before this program ran is closed.
 * @param options NODE_OPTIONS of the process: a debugger that was asked for stays
 */
export function refuseDebugger(options = ''): void {
  process.on('SIGUSR1', () => {});
  if (url() !== undefined && ![options, ...process.execArgv].some((one) => /--inspect(?!-port)/.test(one))) close();
}
