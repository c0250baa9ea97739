import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { env } from 'node:process';

/*
 * Hosts that are network namespaces of this machine. Each has an address of its own, and is joined to a bridge, which
 * is in a namespace too. This process has an address there, so that it can ask what the hosts serve; nothing else of
 * the machine can reach them.
 */

export interface Host {
  readonly name: string;
  readonly address: string;
  /** The command that runs the rest of its arguments on this host, with the same process id. */
  readonly exec: readonly string[];
  /** Takes the host's link down: new connections fail at once, open ones become silent. */
  readonly cut: () => void;
  /** Discards what others send to the host, and lets pass what it sends: nothing is reset. */
  readonly deafen: () => void;
  /** Undoes `cut` and `deafen`. */
  readonly restore: () => void;
}

export interface Network {
  readonly host: (name: string) => Host;
  /** Removes the hosts. Processes on them must have ended. */
  readonly close: () => void;
}

/** Runs `ip` or `tc`. @throws with what it printed */
function net(command: 'ip' | 'tc', ...args: readonly string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
}

const PREFIX = 'catchword-';

function namespaces(): string[] {
  try {
    return readdirSync('/run/netns').filter((name) => name.startsWith(PREFIX));
  } catch {
    // None was ever made on this machine.
    return [];
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Removes what tests that were killed left behind. */
function removeLeftovers(): void {
  for (const name of namespaces()) {
    if (!isAlive(Number(name.slice(PREFIX.length).split('-')[0]))) net('ip', 'netns', 'del', name);
  }
}

/** @throws if this machine does not let this user make namespaces */
export function openNetwork(): Network {
  removeLeftovers();
  const { pid } = process;
  const prefix = `${PREFIX}${pid}-`;
  const bridge = `${prefix}switch`;
  // Another process has another network, so that both can run at once.
  const network = `10.${128 + ((pid >> 8) % 128)}.${pid % 256}`;
  const outside = `cw${pid}`;
  let hosts = 0;

  function close(): void {
    // At once, and with its other end: a namespace is removed a moment after its name.
    if (existsSync(`/sys/class/net/${outside}`)) net('ip', 'link', 'del', outside);
    for (const name of namespaces()) if (name.startsWith(prefix)) net('ip', 'netns', 'del', name);
  }

  try {
    net('ip', 'netns', 'add', bridge);
    net('ip', '-n', bridge, 'link', 'add', 'bridge', 'type', 'bridge');
    net('ip', '-n', bridge, 'link', 'set', 'bridge', 'up');
    net('ip', 'link', 'add', outside, 'type', 'veth', 'peer', 'name', 'outside', 'netns', bridge);
    net('ip', '-n', bridge, 'link', 'set', 'outside', 'master', 'bridge', 'up');
    net('ip', 'address', 'add', `${network}.254/24`, 'dev', outside);
    net('ip', 'link', 'set', outside, 'up');
  } catch (error) {
    close();
    throw error;
  }

  return {
    host: (name) => {
      const namespace = `${prefix}${name}`;
      const address = `${network}.${++hosts}`;
      const port = `port${hosts}`;
      let isDeaf = false;
      net('ip', 'netns', 'add', namespace);
      net('ip', 'link', 'add', 'eth0', 'netns', namespace, 'type', 'veth', 'peer', 'name', port, 'netns', bridge);
      net('ip', '-n', bridge, 'link', 'set', port, 'master', 'bridge', 'up');
      net('ip', '-n', namespace, 'address', 'add', `${address}/24`, 'dev', 'eth0');
      for (const device of ['lo', 'eth0']) net('ip', '-n', namespace, 'link', 'set', device, 'up');
      return {
        name,
        address,
        exec: ['ip', 'netns', 'exec', namespace],
        cut: () => net('ip', '-n', namespace, 'link', 'set', 'eth0', 'down'),
        deafen: () => {
          // A queue without room discards what it gets. netem is a module that many kernels do not have.
          net('tc', '-n', bridge, 'qdisc', 'replace', 'dev', port, 'root', 'pfifo', 'limit', '0');
          isDeaf = true;
        },
        restore: () => {
          net('ip', '-n', namespace, 'link', 'set', 'eth0', 'up');
          if (isDeaf) net('tc', '-n', bridge, 'qdisc', 'del', 'dev', port, 'root');
          isDeaf = false;
        },
      };
    },
    close,
  };
}

/** Why namespaces cannot be made here; null if they can. CI fails if they cannot. */
function whyWithout(): string | null {
  if (process.getuid?.() !== 0) return 'only root may make network namespaces';
  try {
    const network = openNetwork();
    network.host('trial');
    network.close();
    return null;
  } catch (error) {
    return `network namespaces cannot be made: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function check(): boolean {
  const why = whyWithout();
  if (why !== null && env.CI !== undefined) throw new Error(`${why}: needed on CI (see .ci/run)`);
  if (why !== null) process.stderr.write(`${why}: tests with hosts are left out\n`);
  return why === null;
}

export const hostsAvailable = check();
