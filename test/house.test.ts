/** Imports never run in circles: neither from file to file, nor from folder to folder; and each folder says what may be in it. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../src/runtime/package-root.ts';

const files = globSync('{machines,src,visualize}/**/*.{ts,tsx}', { cwd: packageRoot() }).filter(
  (file) => !file.startsWith('src/gen/') && !/\.test\.tsx?$/.test(file),
);

const known = new Set(files);
const imports = new Map(files.map((file) => [file, importsOf(file)]));

/** What a file imports of the house, types as well; the formatter sees to it that all imports are written alike. */
function importsOf(file: string): readonly string[] {
  const text = readFileSync(join(packageRoot(), file), 'utf8');
  return [...text.matchAll(/\b(?:from |import |import\()'(\.[^']+)'/g)]
    .map(([, target = '']) => posix.join(dirname(file), target))
    .filter((target) => known.has(target));
}

/**
 * `src/model/kinds/kubernetes/pod.ts` → `src/model/kinds`; a file beside the rooms, such as `src/networking/index.ts` or
 * `machines/agent/protocol.ts`, is a room of its own.
 */
function roomOf(file: string): string {
  const [top, part, room, ...rest] = file.split('/');
  if (top === 'src' || top === 'machines') return rest.length === 0 ? file : `${top}/${part}/${room}`;
  return dirname(file);
}

/** Each group of nodes that reach one another, largest first (Tarjan's algorithm). */
function circles(edges: ReadonlyMap<string, Iterable<string>>): string[][] {
  const found: string[][] = [];
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const visit = (node: string): void => {
    order.set(node, order.size);
    lowest.set(node, order.get(node) as number);
    stack.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!order.has(next)) visit(next);
      if (stack.includes(next)) lowest.set(node, Math.min(lowest.get(node) as number, lowest.get(next) as number));
    }
    if (lowest.get(node) !== order.get(node)) return;
    const group = stack.splice(stack.indexOf(node));
    if (group.length > 1) found.push(group.sort());
  };
  for (const node of edges.keys()) if (!order.has(node)) visit(node);
  return found.sort((a, b) => b.length - a.length);
}

function betweenRooms(): ReadonlyMap<string, Set<string>> {
  const edges = new Map<string, Set<string>>();
  for (const [file, targets] of imports) {
    const from = roomOf(file);
    const all = edges.get(from) ?? new Set();
    edges.set(from, all);
    for (const target of targets) if (roomOf(target) !== from) all.add(roomOf(target));
  }
  return edges;
}

/** `a → b: file → file`, for every import that ties rooms of one circle. */
function ties(groups: readonly (readonly string[])[]): string[] {
  return groups.flatMap((group) =>
    [...imports].flatMap(([file, targets]) =>
      targets
        .filter(
          (target) => roomOf(target) !== roomOf(file) && group.includes(roomOf(file)) && group.includes(roomOf(target)),
        )
        .map((target) => `${file} → ${target}`),
    ),
  );
}

describe('imports', () => {
  test('circles are found where there are some', () => {
    expect(
      circles(
        new Map([
          ['a', ['b']],
          ['b', ['c']],
          ['c', ['b']],
          ['d', ['a']],
        ]),
      ),
    ).toEqual([['b', 'c']]);
  });

  test('the house is read', () => {
    expect(files.length).toBeGreaterThan(500);
    expect(imports.get('src/model/kinds/index.ts')).toContain('src/model/kinds/kubernetes/index.ts');
  });

  test('run in no circle from file to file', () => {
    expect(circles(imports)).toEqual([]);
  });

  test('run in no circle from room to room', () => {
    expect(ties(circles(betweenRooms()))).toEqual([]);
  });
});

/** Files of one name stand for one thing in rooms that are alike; elsewhere a name says which file is meant. */
const namesakes: readonly (readonly [why: string, rooms: RegExp])[] = [
  ['the way into a room', /\/(index|build)\.ts$/],
  ['the two sides, and what they share', /^machines\//],
  ['a command of the program', /^src\/cli\/commands\//],
  ['a kind of object', /^src\/model\/kinds\//],
  [
    "the parts of Envoy's resources, and their patches",
    /^src\/networking\/(clusters|endpoints|listeners|routes|patches|authentication)\//,
  ],
];

const charted = new Set(
  files.filter((file) => file.startsWith('machines/')).map((file) => `${file.split('/')[1]}/${posix.basename(file)}`),
);

/** `src/agent/…/x.ts` beside `machines/agent/…/x.ts`: the effects of what the chart has by that name. */
function isEffectOf(file: string): boolean {
  const [, side = ''] = /^src\/(agent|discovery)\//.exec(file) ?? [];
  const name = posix.basename(file);
  return charted.has(`${side}/${name}`);
}

/** For a file's name that is there twice: all but one are where they may be. */
function namedTwice(all: readonly string[]): string[] {
  const byName = Map.groupBy(all, (file) => posix.basename(file));
  return [...byName.values()]
    .filter(
      (some) => some.filter((file) => !isEffectOf(file) && !namesakes.some(([, rooms]) => rooms.test(file))).length > 1,
    )
    .flat();
}

test('a name of a file means one thing', () => {
  expect(namedTwice(['src/a/merge.ts', 'src/b/merge.ts', 'src/c/x.ts', 'machines/x.ts'])).toEqual([
    'src/a/merge.ts',
    'src/b/merge.ts',
  ]);
  expect(namedTwice(files.filter((file) => !file.startsWith('visualize/')))).toEqual([]);
});

/** A folder that has no README of its own is in a row or sentence of the one above it, as `name/`. */
function isIntroduced(folder: string): boolean {
  const readmeOf = (of: string): string => join(packageRoot(), of, 'README.md');
  if (existsSync(readmeOf(folder))) return true;
  let above = dirname(folder);
  while (above !== '.' && !existsSync(readmeOf(above))) above = dirname(above);
  const names = posix.relative(above, folder).split('/');
  const text = above === '.' ? '' : readFileSync(readmeOf(above), 'utf8');
  return new RegExp(`\`(${names.slice(0, -1).join('/')}/)?${names.at(-1)}/\``).test(text);
}

describe('folders', () => {
  const folders = [...new Set(files.map((file) => dirname(file)))];

  test.each(folders)('%s is introduced by a README', (folder) => {
    expect(isIntroduced(folder)).toBe(true);
  });

  test('one that nobody introduces is seen', () => {
    expect(isIntroduced('src/model/nothing')).toBe(false);
    expect(isIntroduced('src/networking')).toBe(true);
  });
});
