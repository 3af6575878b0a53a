/** An immutable map. A new version copies the path to each changed entry and shares the rest (hash trie with 32 branches). */
import { runToEnd, type Steps } from '../../runtime/turns.ts';

type Leaf<V> = { readonly hash: number; readonly entries: readonly (readonly [string, V])[] };
type Branch<V> = { readonly children: (Node<V> | undefined)[]; readonly editor?: object | undefined };
type Node<V> = Leaf<V> | Branch<V>;

const bitsPerLevel = 5;
const childrenPerNode = 1 << bitsPerLevel;

export class PersistentMap<V> implements ReadonlyMap<string, V> {
  static readonly #empty = new PersistentMap<never>(undefined, 0);
  readonly #root: Node<V> | undefined;
  readonly size: number;

  private constructor(root: Node<V> | undefined, size: number) {
    this.#root = root;
    this.size = size;
  }

  static empty<V>(): PersistentMap<V> {
    return PersistentMap.#empty;
  }

  static of<V>(entries: Iterable<readonly [string, V]>): PersistentMap<V> {
    return PersistentMap.empty<V>().withAll(entries);
  }

  get(key: string): V | undefined {
    return this.#entry(key)?.[1];
  }

  has(key: string): boolean {
    return this.#entry(key) !== undefined;
  }

  with(key: string, value: V): PersistentMap<V> {
    const previousEntry = this.#entry(key);
    if (previousEntry !== undefined && previousEntry[1] === value) return this;
    const root = insertEntry(this.#root, hashOf(key), 0, [key, value]);
    return new PersistentMap(root, this.size + (previousEntry === undefined ? 1 : 0));
  }

  /** Cheaper than one call of {@link withItem} per entry. */
  withAll(entries: Iterable<readonly [string, V]>): PersistentMap<V> {
    return runToEnd(this.addAllInSteps(entries));
  }

  *addAllInSteps(entries: Iterable<readonly [string, V]>): Steps<PersistentMap<V>> {
    const editor = {};
    let root = this.#root;
    let { size } = this;
    for (const entry of entries) {
      if (entryOf(root, entry[0]) === undefined) size++;
      root = insertEntry(root, hashOf(entry[0]), 0, entry, editor);
      yield;
    }
    return new PersistentMap(root, size);
  }

  withoutKey(key: string): PersistentMap<V> {
    if (!this.has(key)) return this;
    return this.size === 1
      ? PersistentMap.empty()
      : new PersistentMap(removeEntry(this.#root!, hashOf(key), 0, key), this.size - 1);
  }

  *entries(): MapIterator<[string, V]> {
    for (const [key, value] of walkEntries(this.#root)) yield [key, value];
  }

  *keys(): MapIterator<string> {
    for (const [key] of walkEntries(this.#root)) yield key;
  }

  *values(): MapIterator<V> {
    for (const [, value] of walkEntries(this.#root)) yield value;
  }

  [Symbol.iterator](): MapIterator<[string, V]> {
    return this.entries();
  }

  forEach(visit: (value: V, key: string, map: ReadonlyMap<string, V>) => void): void {
    for (const [key, value] of walkEntries(this.#root)) visit(value, key, this);
  }

  /** Skips shared nodes, so comparing a map with its derived version costs as much as their difference. */
  differingKeys(otherMap: PersistentMap<V>): Iterable<string> {
    return differences(this.#root, otherMap.#root);
  }

  #entry(key: string): readonly [string, V] | undefined {
    return entryOf(this.#root, key);
  }
}

function entryOf<V>(root: Node<V> | undefined, key: string): readonly [string, V] | undefined {
  const hash = hashOf(key);
  let node = root;
  for (let shift = 0; node !== undefined; shift += bitsPerLevel) {
    if ('entries' in node) return node.hash === hash ? node.entries.find(([entryKey]) => entryKey === key) : undefined;
    node = node.children[(hash >>> shift) & (childrenPerNode - 1)];
  }
  return undefined;
}

/** FNV-1a (32 bits) with a final mix, because the lowest bits select the first branches. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/** @param editor branches of this editor are modified in place; others are copied */
function insertEntry<V>(
  node: Node<V> | undefined,
  hash: number,
  shift: number,
  entry: readonly [string, V],
  editor?: object,
): Node<V> {
  if (node === undefined) return { hash, entries: [entry] };
  if ('entries' in node) {
    if (node.hash === hash) return { hash, entries: [...node.entries.filter(([key]) => key !== entry[0]), entry] };
    const children = new Array<Node<V> | undefined>(childrenPerNode).fill(undefined);
    children[(node.hash >>> shift) & (childrenPerNode - 1)] = node;
    const branch = { children, editor: editor ?? {} };
    return insertEntry(branch, hash, shift, entry, branch.editor);
  }
  const index = (hash >>> shift) & (childrenPerNode - 1);
  const child = insertEntry(node.children[index], hash, shift + bitsPerLevel, entry, editor);
  if (editor === undefined || node.editor !== editor) return { children: node.children.with(index, child), editor };
  node.children[index] = child;
  return node;
}

function removeEntry<V>(node: Node<V>, hash: number, shift: number, key: string): Node<V> | undefined {
  if ('entries' in node) {
    const entries = node.entries.filter(([entryKey]) => entryKey !== key);
    return entries.length === 0 ? undefined : { hash: node.hash, entries };
  }
  const index = (hash >>> shift) & (childrenPerNode - 1);
  const children = node.children.with(index, removeEntry(node.children[index]!, hash, shift + bitsPerLevel, key));
  const remainingChildren = children.filter((child) => child !== undefined);
  // A branch with one leaf becomes the leaf. A branch with one child branch stays, because the depth determines the hash bits that select a child.
  if (remainingChildren.length === 1 && 'entries' in remainingChildren[0]!) return remainingChildren[0];
  return remainingChildren.length === 0 ? undefined : { children };
}

function* differences<V>(leftNode: Node<V> | undefined, rightNode: Node<V> | undefined): Generator<string> {
  if (leftNode === rightNode) return;
  if (leftNode !== undefined && 'children' in leftNode && rightNode !== undefined && 'children' in rightNode) {
    for (let index = 0; index < childrenPerNode; index++)
      yield* differences(leftNode.children[index], rightNode.children[index]);
    return;
  }
  const remainingEntries = new Map(walkEntries(leftNode));
  for (const [key, value] of walkEntries(rightNode)) {
    const isUnchanged = remainingEntries.get(key) === value && remainingEntries.has(key);
    remainingEntries.delete(key);
    if (!isUnchanged) yield key;
  }
  yield* remainingEntries.keys();
}

function* walkEntries<V>(node: Node<V> | undefined): Generator<readonly [string, V]> {
  if (node === undefined) return;
  if ('entries' in node) yield* node.entries;
  else for (const child of node.children) yield* walkEntries(child);
}
