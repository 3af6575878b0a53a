/**
 * Structure of the sources: no import cycles between files or folders, layers, a layout of charts and effects, size
 * limits, and a README for each folder.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../src/runtime/package-root.ts';

const files = globSync('{machines,src,visualize}/**/*.{ts,tsx}', { cwd: packageRoot() }).filter(
  (file) => !file.startsWith('src/gen/') && !/\.test\.tsx?$/.test(file),
);

const knownFiles = new Set(files);
const imports = new Map(files.map((file) => [file, importsOf(file)]));

/** Imports of a file within the package, including types. The formatter guarantees the form of imports. */
function importsOf(file: string, among: ReadonlySet<string> = knownFiles): readonly string[] {
  const text = readFileSync(join(packageRoot(), file), 'utf8');
  return [...text.matchAll(/\b(?:from |import |import\()'(\.[^']+)'/g)]
    .map(([, target = '']) => posix.join(dirname(file), target))
    .filter((target) => among.has(target));
}

/**
 * `src/model/kinds/kubernetes/pod.ts` → `src/model/kinds`. A file outside of these folders, such as
 * `src/networking/index.ts` or `machines/agent/protocol.ts`, is its own group.
 */
function groupOf(file: string): string {
  const [top, areaName, folderName, ...rest] = file.split('/');
  if (top === 'src' || top === 'machines') return rest.length === 0 ? file : `${top}/${areaName}/${folderName}`;
  return dirname(file);
}

/** Strongly connected components with several nodes, largest first (Tarjan's algorithm). */
function cycles(edges: ReadonlyMap<string, Iterable<string>>): string[][] {
  const importCycles: string[][] = [];
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
    if (group.length > 1) importCycles.push(group.sort());
  };
  for (const node of edges.keys()) if (!order.has(node)) visit(node);
  return importCycles.sort((a, b) => b.length - a.length);
}

function betweenGroups(): ReadonlyMap<string, Set<string>> {
  const edges = new Map<string, Set<string>>();
  for (const [file, targets] of imports) {
    const from = groupOf(file);
    const all = edges.get(from) ?? new Set();
    edges.set(from, all);
    for (const target of targets) if (groupOf(target) !== from) all.add(groupOf(target));
  }
  return edges;
}

/** `a → b: file → file` for every import between folders of one cycle. */
function cycleImports(groups: readonly (readonly string[])[]): string[] {
  return groups.flatMap((group) =>
    [...imports].flatMap(([file, targets]) =>
      targets
        .filter(
          (target) =>
            groupOf(target) !== groupOf(file) && group.includes(groupOf(file)) && group.includes(groupOf(target)),
        )
        .map((target) => `${file} → ${target}`),
    ),
  );
}

/** Programs and shared code from top to bottom: each imports only lower layers. */
const layers: readonly (readonly string[])[] = [
  ['src/cli'],
  ['src/simulation', 'visualize'],
  ['src/agent', 'src/discovery', 'src/iptables', 'src/debugger', 'src/record'],
  ['src/networking', 'src/injection'],
  ['src/model'],
  ['src/identity'],
  ['src/runtime'],
  ['machines/agent', 'machines/discovery'],
  ['machines'],
];

function layerOf(file: string): { readonly part: string; readonly depth: number } {
  const [top = '', name, ...rest] = file.split('/');
  const part = top === 'visualize' || rest.length === 0 ? top : `${top}/${name}`;
  return { part, depth: layers.findIndex((layerParts) => layerParts.includes(part)) };
}

/** Files in no layer, and imports of the same or a higher layer. */
function layerProblems(all: ReadonlyMap<string, readonly string[]>): string[] {
  return [...all].flatMap(([file, targets]) => {
    const from = layerOf(file);
    if (from.depth < 0) return [`${file}: in no layer`];
    return targets
      .map((target) => ({ target, to: layerOf(target) }))
      .filter(({ to }) => to.part !== from.part && to.depth <= from.depth)
      .map(({ target }) => `${file} → ${target}`);
  });
}

describe('imports', () => {
  test('the check finds import cycles', () => {
    expect(
      cycles(
        new Map([
          ['a', ['b']],
          ['b', ['c']],
          ['c', ['b']],
          ['d', ['a']],
        ]),
      ),
    ).toEqual([['b', 'c']]);
  });

  test('all sources and their imports are read', () => {
    expect(files.length).toBeGreaterThan(500);
    expect(imports.get('src/model/kinds/index.ts')).toContain('src/model/kinds/kubernetes/index.ts');
  });

  test('imports between files have no cycle', () => {
    expect(cycles(imports)).toEqual([]);
  });

  test('imports between files have no cycle in tests', () => {
    const tests = globSync('{machines,src,visualize,test,proto}/**/*.{ts,tsx}', { cwd: packageRoot() });
    const all = new Set(tests.filter((file) => !file.startsWith('src/gen/')));
    expect(cycles(new Map([...all].map((file) => [file, importsOf(file, all)])))).toEqual([]);
  });

  test('imports lead from a program to lower layers, and to no other program', () => {
    expect(layerProblems(imports)).toEqual([]);
  });

  test('the check finds an import of a higher layer or another program, and a file in no layer', () => {
    const all = new Map([
      ['src/agent/a.ts', ['src/agent/b/c.ts', 'src/model/kinds/d.ts', 'machines/agent/e.ts']],
      ['src/model/kinds/d.ts', ['src/networking/index.ts']],
      ['src/agent/b/c.ts', ['src/discovery/f.ts']],
      ['machines/effect.ts', ['machines/agent/e.ts']],
      ['src/new/g.ts', []],
    ]);
    expect(layerProblems(all)).toEqual([
      'src/model/kinds/d.ts → src/networking/index.ts',
      'src/agent/b/c.ts → src/discovery/f.ts',
      'machines/effect.ts → machines/agent/e.ts',
      'src/new/g.ts: in no layer',
    ]);
  });

  test('imports between folders have no cycle', () => {
    expect(cycleImports(cycles(betweenGroups()))).toEqual([]);
  });
});

/** Groups of similar folders, in which files may have equal names. Elsewhere a file name is unique. */
const similarFolders: readonly (readonly [why: string, folders: RegExp])[] = [
  ['the way into a room', /\/(index|build)\.ts$/],
  ['the two sides, and what they share', /^machines\//],
  ['a command of the program', /^src\/cli\/commands\//],
  ['a kind of object', /^src\/model\/kinds\//],
  [
    "the parts of Envoy's resources, and their patches",
    /^src\/networking\/(clusters|endpoints|listeners|routes|patches|authentication)\//,
  ],
];

const chartFiles = new Set(
  files.filter((file) => file.startsWith('machines/')).map((file) => `${file.split('/')[1]}/${posix.basename(file)}`),
);

/** Whether the file contains effects of a chart: `src/agent/…/x.ts` for `machines/agent/…/x.ts`. */
function isEffectFile(file: string): boolean {
  const [, programName = ''] = /^src\/(agent|discovery)\//.exec(file) ?? [];
  const name = posix.basename(file);
  return chartFiles.has(`${programName}/${name}`);
}

/** Files with equal names outside of the allowed groups. */
function duplicateNames(all: readonly string[]): string[] {
  const filesByName = Map.groupBy(all, (file) => posix.basename(file));
  return [...filesByName.values()]
    .filter(
      (sameNameFiles) =>
        sameNameFiles.filter((file) => !isEffectFile(file) && !similarFolders.some(([, folders]) => folders.test(file)))
          .length > 1,
    )
    .flat();
}

test('each file name is unique except among similar folders', () => {
  expect(duplicateNames(['src/a/merge.ts', 'src/b/merge.ts', 'src/c/x.ts', 'machines/x.ts'])).toEqual([
    'src/a/merge.ts',
    'src/b/merge.ts',
  ]);
  expect(duplicateNames(files.filter((file) => !file.startsWith('visualize/')))).toEqual([]);
});

/** Folders that exist only in `machines/` or only in `src/`, with the reason. All others exist in both. */
const unpaired: ReadonlyMap<string, string> = new Map([
  ['machines/agent/sequences', 'diagrams'],
  ['machines/discovery/sequences', 'diagrams'],
  ['src/agent/admin', "client of Envoy's admin interface; the charts of envoy/ order its use"],
  ['src/agent/grpc', 'transport'],
  ['src/agent/health', 'probes of the workload; the chart workload-health of xds/ orders them'],
  ['src/agent/identity', 'values: credentials and roots'],
  ['src/agent/options', 'flags and environment, read once'],
  ['src/agent/ports', 'ports that outlive an agent; the charts of agent-upgrade/ are written for it'],
  ['src/discovery/cluster', 'composition: an API server of kubernetes/ with the readers of other folders'],
  ['src/discovery/config-server', 'objects as resources; the chart ads-connection of xds/ serves them'],
  ['src/discovery/conformance', 'adapter for tests'],
  ['src/discovery/installation', 'the command check, without state'],
  ['src/discovery/controllers', 'duties; the chart elected-writer of election/ orders them'],
  ['src/discovery/changes', 'a record of pushes; it follows states and has none'],
  ['src/discovery/explain', 'a command that runs once'],
  ['src/discovery/monitor', 'metrics and pages; they read states and have none'],
  ['src/discovery/options', 'flags and environment, read once'],
  ['src/discovery/references', 'pure checks of objects'],
]);

interface Layout {
  readonly files: readonly string[];
  readonly textOf: (file: string) => string;
}

const effectsOf = (chart: string): string =>
  chart.replace(/^machines\//, 'src/').replace(/\.machine\.ts$/, '.effects.ts');

/** Violations of the layout: only `src/…/x.effects.ts` provides the effects of `machines/…/x.machine.ts`. */
function layoutProblems({ files: all, textOf }: Layout): string[] {
  const existingFiles = new Set(all);
  const charts = all.filter((file) => /^machines\/.*\.machine\.ts$/.test(file));
  /** Whether the chart, a file that it is built with, or a chart that it invokes or spawns names effects. */
  const namesEffects = (file: string): boolean =>
    /\b(promise|callback)Effect</.test(textOf(file)) ||
    [...textOf(file).matchAll(/^import (?!type )[^;]*? from '(\.[^']+)'/gm)]
      .map(([, target = '']) => posix.join(dirname(file), target))
      .some((target) => existingFiles.has(target) && /^machines\/[^/]+\/./.test(target) && namesEffects(target));
  const provides = (file: string): boolean => /\.provide\(/.test(textOf(file));
  return [
    ...charts
      .filter((chart) => namesEffects(chart) && !existingFiles.has(effectsOf(chart)))
      .map((chart) => `${chart}: its effects belong in ${effectsOf(chart)}`),
    ...all
      .filter((file) => /\.effects\.ts$/.test(file))
      .filter((file) => {
        const chart = file.replace(/^src\//, 'machines/').replace(/\.effects\.ts$/, '.machine.ts');
        return !existingFiles.has(chart) || !provides(file);
      })
      .map((file) => `${file}: provides no effects of a chart of its name`),
    ...all
      .filter((file) => /^src\/(agent|discovery)\//.test(file) && !file.endsWith('.effects.ts') && provides(file))
      .map((file) => `${file}: calls provide; effects belong in a file with the name of their chart`),
  ];
}

/** Unlisted folders of a program that exist on one side only, and list entries that do not apply. */
function unpairedFolders(all: readonly string[], exceptions: ReadonlyMap<string, string>): string[] {
  const folders = new Set(
    all.flatMap((file) => file.match(/^(?:machines|src)\/(?:agent|discovery)\/[^/]+(?=\/)/)?.[0] ?? []),
  );
  const otherSide = (folder: string): string =>
    folder.replace(/^\w+/, (topFolder) => (topFolder === 'src' ? 'machines' : 'src'));
  return [
    ...[...folders].filter((folder) => !folders.has(otherSide(folder)) && !exceptions.has(folder)),
    ...[...exceptions.keys()].filter((folder) => !folders.has(folder) || folders.has(otherSide(folder))),
  ];
}

/** Maximum lines of the control plane's composition. More code belongs in the factory of a folder. */
const maxCompositionLines = 250;

/** Folders of the control plane without a factory, with the folder that creates their parts. */
const foldersWithoutFactory: ReadonlyMap<string, string> = new Map([
  ['bundles', 'ca'],
  ['conformance', 'test adapter'],
  ['election', 'controllers'],
  ['explain', 'a command'],
  ['installation', 'a command'],
  ['kubernetes', 'cluster, remote'],
  ['options', 'discovery-system.ts resolves them before'],
  ['references', 'pure functions'],
]);

/** Folders of the control plane without `make-<folder>.ts`, and other imports of `control-plane.ts`. */
function factoryProblems(
  all: readonly string[],
  composition: string,
  exceptions: ReadonlyMap<string, string> = foldersWithoutFactory,
): string[] {
  const folders = new Set(all.flatMap((file) => file.match(/^src\/discovery\/([^/]+)\//)?.[1] ?? []));
  const imported = [...composition.matchAll(/^import (type )?(?:\{([^}]*)\} )?from '\.\/([\w-]+)\/([^']+)';$/gm)];
  return [
    ...[...folders]
      .filter((folder) => !exceptions.has(folder) && !all.includes(`src/discovery/${folder}/make-${folder}.ts`))
      .map((folder) => `${folder}: no make-${folder}.ts`),
    ...[...exceptions.keys()]
      .filter((folder) => !folders.has(folder) || all.includes(`src/discovery/${folder}/make-${folder}.ts`))
      .map((folder) => `${folder}: the exception is not needed`),
    ...imported
      .filter(([, isType, names = '', folder, file]) => {
        const areTypes = names.split(',').every((name) => /^\s*(?:type |$)/.test(name));
        return isType === undefined && !areTypes && file !== `make-${folder}.ts`;
      })
      .map(([, , , folder, file]) => `${folder}/${file}: use the factory of the folder`),
  ];
}

/** A longer file contains more than one concept. */
const maxFileLines = 450;
/** Maximum files of a folder. Tests next to their subject do not count. */
const maxFolderFiles = 25;

/** Files that may be longer, with reasons. */
const longFiles: ReadonlyMap<string, string> = new Map([
  ['src/simulation/agent/exploration-world.ts', 'one world that its own methods save, restore and compare as a whole'],
  ['src/simulation/agent/simulated-host.ts', 'one host: each rule about processes reads the state of all others'],
]);

/** Files and folders beyond a limit, and unnecessary exceptions. */
function sizeProblems(
  all: readonly string[],
  linesOf: (file: string) => number,
  exceptions: ReadonlyMap<string, string> = longFiles,
): string[] {
  const isLong = (file: string): boolean => linesOf(file) > maxFileLines;
  return [
    ...all
      .filter((file) => isLong(file) && !exceptions.has(file))
      .map((file) => `${file}: ${linesOf(file)} lines, at most ${maxFileLines}`),
    ...[...exceptions.keys()]
      .filter((file) => !all.includes(file) || !isLong(file))
      .map((file) => `${file}: the exception is not needed`),
    ...[...Map.groupBy(all, (file) => dirname(file))]
      .filter(([, files]) => files.length > maxFolderFiles)
      .map(([folder, { length }]) => `${folder}: ${length} files, at most ${maxFolderFiles}`),
  ];
}

describe('layout', () => {
  const textOf = (file: string): string => readFileSync(join(packageRoot(), file), 'utf8');
  const withDiagrams = [...files, ...globSync('machines/*/sequences/*.mmd', { cwd: packageRoot() })];

  test("the effects of each chart are only in the file with the chart's name", () => {
    expect(layoutProblems({ files, textOf })).toEqual([]);
  });

  test('control-plane.ts has fewer lines than the limit', () => {
    expect(textOf('src/discovery/control-plane.ts').split('\n').length).toBeLessThan(maxCompositionLines);
  });

  test('each folder of the control plane has a factory, which is all that the composition imports from the folder', () => {
    expect(factoryProblems(files, textOf('src/discovery/control-plane.ts'))).toEqual([]);
  });

  test('the check finds a folder without a factory, and a part that is created without it', () => {
    const composition = [
      "import { makeA } from './a/make-a.ts';",
      "import { type Part, Other } from './a/part.ts';",
      "import { type Part } from './b/part.ts';",
      "import type { More } from './b/more.ts';",
    ].join('\n');
    const all = ['src/discovery/a/make-a.ts', 'src/discovery/b/part.ts', 'src/discovery/c/part.ts'];
    expect(
      factoryProblems(
        all,
        composition,
        new Map([
          ['a', ''],
          ['c', ''],
        ]),
      ),
    ).toEqual(['b: no make-b.ts', 'a: the exception is not needed', 'a/part.ts: use the factory of the folder']);
  });

  test('each file and each folder is within its size limit', () => {
    expect(sizeProblems(files, (file) => textOf(file).trimEnd().split('\n').length)).toEqual([]);
  });

  test('the check finds a file with too many lines, a folder with too many files, and an unnecessary exception', () => {
    const manyFiles = Array.from({ length: maxFolderFiles + 1 }, (_, index) => `src/a/x${index}.ts`);
    const linesOf = (file: string): number => (file.startsWith('src/b/') ? maxFileLines + 1 : maxFileLines);
    const exceptions = new Map([
      ['src/b/known.ts', ''],
      ['src/c/short.ts', ''],
    ]);
    const all = [...manyFiles, 'src/b/long.ts', 'src/b/known.ts', 'src/c/short.ts'];
    expect(sizeProblems(all, linesOf, exceptions)).toEqual([
      `src/b/long.ts: ${maxFileLines + 1} lines, at most ${maxFileLines}`,
      'src/c/short.ts: the exception is not needed',
      `src/a: ${maxFolderFiles + 1} files, at most ${maxFolderFiles}`,
    ]);
  });

  test('each folder of a program exists in both machines/ and src/', () => {
    expect(unpairedFolders(withDiagrams, unpaired)).toEqual([]);
  });

  test('the check finds a chart without effects, effects without a chart, and misplaced effects', () => {
    const texts: Readonly<Record<string, string>> = {
      'machines/agent/a/one.machine.ts': "ask: promiseEffect<void, undefined>('ask')",
      'machines/agent/a/two.machine.ts': 'no effects',
      'machines/agent/a/three.setup.ts': "ask: callbackEffect<Order, undefined>('ask')",
      'machines/agent/a/three.machine.ts': "import { threeSetup } from './three.setup.ts';",
      'machines/agent/a/parent.machine.ts': "import { oneMachine } from './one.machine.ts';",
      'machines/agent/a/types.machine.ts': "import type { Order } from './one.machine.ts';",
      'src/agent/a/three.effects.ts': 'threeMachine.provide({})',
      'src/agent/a/four.effects.ts': 'threeMachine.provide({})',
      'src/agent/a/five.ts': 'twoMachine.provide({})',
    };
    expect(layoutProblems({ files: Object.keys(texts), textOf: (file) => texts[file]! })).toEqual([
      'machines/agent/a/one.machine.ts: its effects belong in src/agent/a/one.effects.ts',
      'machines/agent/a/parent.machine.ts: its effects belong in src/agent/a/parent.effects.ts',
      'src/agent/a/four.effects.ts: provides no effects of a chart of its name',
      'src/agent/a/five.ts: calls provide; effects belong in a file with the name of their chart',
    ]);
  });

  test('the check finds a folder on only one side and an unnecessary exception', () => {
    const all = ['machines/agent/a/x.ts', 'src/agent/a/x.ts', 'machines/agent/b/x.ts', 'src/discovery/c/x.ts'];
    const exceptions = new Map([
      ['src/agent/a', ''],
      ['src/discovery/c', ''],
    ]);
    expect(unpairedFolders(all, exceptions)).toEqual(['machines/agent/b', 'src/agent/a']);
  });
});

/** Whether the folder has a README, or the next README above names it as `name/`. */
function hasReadme(folder: string): boolean {
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

  test.each(folders)('a README describes %s', (folder) => {
    expect(hasReadme(folder)).toBe(true);
  });

  test('the check finds a folder without a README', () => {
    expect(hasReadme('src/model/nothing')).toBe(false);
    expect(hasReadme('src/networking')).toBe(true);
  });
});
