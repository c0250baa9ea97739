import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Random } from '@catchword/sandbox/catalog/random';
import type { Call } from './log.ts';

/*
 * A model of a disk that loses its power, fed with the calls of a log.
 *
 * What may be there afterwards:
 * - of a file: everything before its last successful sync; of each sector written since, any of its states since then, and
 *   so every subset of the writes, in any order. The file's size is any that it had since then. Inside that size, a
 *   sector that was never written holds zeros, or, in some states and in SQLite's files, random bytes (a file system that
 *   allocates a block before it writes it, as ext4 with data=writeback).
 * - of names: everything before the last successful sync of their directory; of the later creations, renames and
 *   removals any subset. A rename is atomic: both names change, or neither. The sync of a file does not keep its name.
 * - of a sync that failed: the kernel may have dropped what was to be written. It is kept only if the same page of
 *   the file is written again, and synced with success.
 *
 * ext4 (data=ordered), XFS and Btrfs promise more: they order names, and keep the name of a new file that is synced. The
 * model does not contain disks that lie about a sync, and sectors that are damaged while they are written (SQLite assumes
 * this too: "powersafe overwrite"). Modes, owners and times of files are not kept. The -shm has random content, because
 * SQLite must not believe it after a crash.
 */

const SECTOR = 512;
const PAGE = 4096;

/** A write, or with `bytes` null a change of the size to `at`. */
interface Change {
  readonly at: number;
  readonly bytes: Buffer | null;
  /** Whether a sync failed since: the kernel may never write it. */
  readonly isDropped: boolean;
}

/** Bytes that grow. */
interface Content {
  bytes: Buffer;
  size: number;
}

interface FileNode {
  readonly durable: Content;
  pending: Change[];
}

type Entry = FileNode | 'directory';

/** A change of names that belong together. */
interface NameChange {
  readonly set: readonly (readonly [path: string, entry: Entry | null])[];
}

/** How much of what was not synced survives. */
export type Style = 'none' | 'all' | 'prefix' | 'sectors' | 'pages';

const STYLES: readonly Style[] = ['none', 'all', 'prefix', 'sectors', 'sectors', 'sectors', 'pages', 'pages'];
const NAME_STYLES: readonly Style[] = ['none', 'all', 'prefix', 'sectors'];

function newNode(): FileNode {
  return { durable: { bytes: Buffer.alloc(0), size: 0 }, pending: [] };
}

function copyOf({ bytes, size }: Content): Content {
  return { bytes: Buffer.from(bytes.subarray(0, size)), size };
}

function resize(content: Content, size: number): void {
  if (size > content.bytes.length) {
    const larger = Buffer.alloc(2 * size);
    content.bytes.copy(larger, 0, 0, content.size);
    content.bytes = larger;
  }
  if (size < content.size) content.bytes.fill(0, size, content.size);
  content.size = size;
}

function apply(content: Content, { at, bytes }: Change): void {
  const end = at + (bytes?.length ?? 0);
  if (bytes === null || end > content.size) resize(content, end);
  bytes?.copy(content.bytes, at);
}

/** Numbers of the blocks of `unit` bytes from `at` to `end`. */
function blocks(at: number, end: number, unit: number): number[] {
  const first = Math.floor(at / unit);
  return Array.from({ length: Math.max(0, Math.ceil(end / unit) - first) }, (_, index) => first + index);
}

function blocksOf({ at, bytes }: Change, unit: number): number[] {
  return blocks(at, at + (bytes?.length ?? 0), unit);
}

/** The parts of dropped writes whose pages were not written since. */
function stillDropped(pending: readonly Change[]): Change[] {
  const again = new Set(pending.flatMap((change) => (change.isDropped ? [] : blocksOf(change, PAGE))));
  return pending.flatMap((change) => {
    const { at, bytes, isDropped } = change;
    if (!isDropped || bytes === null) return [];
    return blocksOf(change, PAGE).flatMap((page) => {
      const [from, to] = [Math.max(at, page * PAGE), Math.min(at + bytes.length, (page + 1) * PAGE)];
      return again.has(page) ? [] : [{ at: from, bytes: bytes.subarray(from - at, to - at), isDropped }];
    });
  });
}

function syncFile(node: FileNode, hasFailed: boolean): void {
  const { durable, pending } = node;
  if (hasFailed) {
    node.pending = pending.map((change) => ({ ...change, isDropped: true }));
    return;
  }
  node.pending = stillDropped(pending);
  const before = node.pending.map(({ at, bytes }) => {
    const kept = Buffer.alloc(bytes?.length ?? 0);
    if (at < durable.size) durable.bytes.copy(kept, 0, at, Math.min(durable.size, at + kept.length));
    return { at, kept };
  });
  for (const change of pending) apply(durable, change);
  for (const { at, kept } of before) kept.copy(durable.bytes, at);
}

function pick<Value>(random: Random, values: readonly Value[]): Value {
  return values[Math.floor(random() * values.length)] as Value;
}

/** What a file may hold after the power failed. */
function contentAfter({ durable, pending }: FileNode, style: Style, random: Random, hasGarbage: boolean): Buffer {
  const content = copyOf(durable);
  const count = { none: 0, all: pending.length, prefix: Math.floor(random() * (pending.length + 1)) };
  if (style !== 'sectors' && style !== 'pages') {
    for (const change of pending.slice(0, count[style])) apply(content, change);
    return content.bytes.subarray(0, content.size);
  }
  const sizes = [durable.size];
  for (const change of pending) {
    const end = change.at + (change.bytes?.length ?? 0);
    sizes.push(change.bytes === null ? end : Math.max(end, sizes.at(-1) ?? 0));
  }
  const unit = style === 'pages' ? PAGE : SECTOR;
  const writesOf = new Map<number, Change[]>();
  const most = Math.max(...sizes);
  for (const change of pending) {
    const touched = change.bytes === null ? blocks(change.at, most, unit) : blocksOf(change, unit);
    for (const block of touched) writesOf.set(block, [...(writesOf.get(block) ?? []), change]);
  }
  const share = pick(random, [0.1, 0.5, 0.9]);
  resize(content, pick(random, [durable.size, sizes.at(-1) ?? 0, pick(random, sizes)]));
  for (const [block, changes] of writesOf) {
    const from = block * unit;
    const to = Math.min(content.size, from + unit);
    const reached = random() < share ? changes.length : Math.floor(random() * changes.length);
    if (from >= to) continue;
    if (reached === 0 && from >= durable.size && hasGarbage) {
      for (let at = from; at < to; at++) content.bytes[at] = Math.floor(random() * 256);
    }
    for (const { at, bytes } of changes.slice(0, reached)) {
      if (bytes === null) content.bytes.fill(0, Math.max(at, from), to);
      else bytes.copy(content.bytes, Math.max(at, from), Math.max(0, from - at), Math.max(0, to - at));
    }
  }
  return content.bytes.subarray(0, content.size);
}

/** @param root the watched directory, which exists durably */
export function createDisk(root: string) {
  const byInode = new Map<number, FileNode>();
  const durable = new Map<string, Entry>();
  const current = new Map<string, Entry>();
  let pendingNames: NameChange[] = [];

  function change(...set: (readonly [string, Entry | null])[]): void {
    pendingNames.push({ set });
    setNames(current, set);
  }

  function setNames(names: Map<string, Entry>, set: NameChange['set']): void {
    for (const [path, entry] of set) {
      if (entry === null) names.delete(path);
      else names.set(path, entry);
    }
  }

  function syncDirectory(path: string): void {
    const isIn = ({ set }: NameChange): boolean => set.some(([name]) => dirname(name) === path);
    for (const pending of pendingNames) if (isIn(pending)) setNames(durable, pending.set);
    pendingNames = pendingNames.filter((pending) => !isIn(pending));
  }

  function fileOf(inode: number): FileNode {
    const node = byInode.get(inode) ?? newNode();
    byInode.set(inode, node);
    return node;
  }

  function step({ kind, error, inode, offset, path, path2, bytes }: Call): void {
    if (kind === 'output' || kind === 'mark') return;
    if (kind === 'create') {
      const node = newNode();
      byInode.set(inode, node);
      change([path, node]);
    } else if (kind === 'mkdir') change([path, 'directory']);
    else if (kind === 'write') fileOf(inode).pending.push({ at: offset, bytes, isDropped: false });
    else if (kind === 'truncate') fileOf(inode).pending.push({ at: offset, bytes: null, isDropped: false });
    else if (kind === 'unlink') change([path, null]);
    else if (kind === 'rename') change([path2, current.get(path) ?? fileOf(inode)], [path, null]);
    else if (kind === 'link') change([path, fileOf(inode)]);
    else if (path === root || current.get(path) === 'directory') {
      if (error === 0) syncDirectory(path);
    } else syncFile(fileOf(inode), error !== 0);
  }

  /** Writes one state of the disk after a power failure into an empty directory. @returns how it was chosen */
  function crash(to: string, random: Random): Style {
    const style = pick(random, STYLES);
    const names = new Map(durable);
    const nameStyle = style === 'none' || style === 'all' ? style : pick(random, NAME_STYLES);
    const until = Math.floor(random() * (pendingNames.length + 1));
    pendingNames.forEach(({ set }, index) => {
      const survives = { none: false, all: true, prefix: index < until, sectors: random() < 0.5, pages: false };
      if (survives[nameStyle]) setNames(names, set);
    });
    const hasGarbage = random() < 0.2;
    const paths = [...names.keys()].sort((a, b) => a.length - b.length);
    for (const path of paths) {
      const parent = dirname(path);
      if (parent !== root && names.get(parent) !== 'directory') continue;
      const entry = names.get(path) ?? 'directory';
      const target = join(to, relative(root, path));
      if (entry === 'directory') mkdirSync(target);
      else if (!path.endsWith('-shm')) {
        // What one file has lost says nothing about another one.
        const own = random() < 0.3 ? pick(random, STYLES) : style;
        const content = contentAfter(entry, own, random, hasGarbage && /\.db(-wal|-journal)?$/.test(path));
        writeFileSync(target, content, { mode: 0o600 });
      } else if (random() < 0.5)
        writeFileSync(target, Buffer.alloc(32_768, Math.floor(random() * 256)), { mode: 0o600 });
    }
    return style;
  }

  return { step, crash };
}
