/** Reading only changed paths has the same result as reading all files. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Config, type ConfigKey, configKeyText } from '../../../model/config/config.ts';
import { readConfigFile, repetition, withoutRepetitions } from '../../../model/config/config-file.ts';
import { type Problem, problemText } from '../../../model/config/problem.ts';
import { ConfigSnapshot } from '../snapshots/config-snapshot.ts';
import { fullProblemText } from '../sources/config-problem.ts';
import { ConfigDirectory } from './config-directory.ts';
import { walkDirectories } from './directory-walk.ts';

const names = [
  'a.yaml',
  'b.yaml',
  'b.yml',
  'b/c.yaml',
  'b/d/e.yaml',
  'b-x.yaml',
  'n.txt',
  '.hidden.yaml',
  '..data/a.yaml',
];

/** Uses few names in few files, so that most objects are duplicates. */
const document = fc
  .record({
    name: fc.constantFrom('x', 'y', 'z'),
    kind: fc.constantFrom('WorkloadEntry', 'Gateway', 'AuthorizationPolicy'),
    address: fc.constantFrom('10.0.0.1', '10.0.0.2', '"?"'),
    team: fc.constantFrom('one', 'two'),
    extra: fc.constantFrom('', '', '', '# comment\n', 'spec: [', 'kind: Pizza\n', 'a: b: c\n'),
  })
  .map(({ name, kind, address, team, extra }) => {
    const spec =
      kind === 'Gateway'
        ? `{servers: [{port: {number: 80, name: ${address}, protocol: HTTP}, hosts: ["*"]}]}`
        : kind === 'AuthorizationPolicy'
          ? `{rules: ${address === '"?"' ? '"?"' : `[{from: [{source: {ipBlocks: [${address}]}}]}]`}}`
          : `{address: ${address}}`;
    const group = kind === 'AuthorizationPolicy' ? 'security' : 'networking';
    return `${extra}apiVersion: ${group}.istio.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, labels: {team: ${team}}}\nspec: ${spec}\n`;
  });

const text = fc.array(document, { maxLength: 3 }).map((documents) => documents.join('---\n'));

const name = fc.constantFrom(...names);

type FileChange = (root: string) => string[];

/** Changes files and returns the paths that a watch would report. */
const fileChange: fc.Arbitrary<FileChange> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ file: name, content: text }).map(
      ({ file, content }): FileChange =>
        (root) => {
          const path = join(root, file);
          const createdDirectory = mkdirSync(dirname(path), { recursive: true });
          rmSync(path, { recursive: true, force: true });
          writeFileSync(path, content);
          return [path, ...(createdDirectory === undefined ? [] : [createdDirectory])];
        },
    ),
  },
  {
    weight: 3,
    arbitrary: name.map(
      (file): FileChange =>
        (root) => {
          rmSync(join(root, file), { recursive: true, force: true });
          return [join(root, file)];
        },
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record({ from: name, to: name }).map(
      ({ from, to }): FileChange =>
        (root) => {
          const createdDirectory = mkdirSync(dirname(join(root, to)), { recursive: true });
          try {
            renameSync(join(root, from), join(root, to));
          } catch {
            return createdDirectory === undefined ? [] : [createdDirectory];
          }
          return [join(root, from), join(root, to), ...(createdDirectory === undefined ? [] : [createdDirectory])];
        },
    ),
  },
  fc.constantFrom<FileChange>(
    (root) => {
      rmSync(join(root, 'b'), { recursive: true, force: true });
      return [join(root, 'b')];
    },
    (root) => {
      rmSync(join(root, 'a.yaml'), { recursive: true, force: true });
      mkdirSync(join(root, 'a.yaml'));
      writeFileSync(join(root, 'a.yaml/in.yaml'), '');
      return [join(root, 'a.yaml')];
    },
    (root) => {
      rmSync(join(root, 'l.yaml'), { force: true });
      symlinkSync('..data/a.yaml', join(root, 'l.yaml'));
      return [join(root, 'l.yaml')];
    },
    (root) => {
      rmSync(join(root, 'l.yaml'), { force: true });
      return [join(root, 'l.yaml')];
    },
    (root) => {
      if (!readdirSync(root).includes('b')) return [];
      chmodSync(join(root, 'b'), 0o700);
      return [join(root, 'b')];
    },
  ),
);

function keyTextOf(key: ConfigKey | undefined): string {
  return key === undefined ? '' : configKeyText(key);
}

/** Reference implementation, which always reads all files. */
class ReferenceReader {
  #previous = new Map<string, Config>();
  #problems = new Map<string, string>();

  async read(root: string) {
    const { files } = await walkDirectories(root);
    const { readFileSync } = await import('node:fs');
    const contents = files.map(({ path }) => {
      return readConfigFile(path, readFileSync(path, 'utf8'), { creationTimestamp: 0 });
    });
    // The first object of each key applies, even if it was rejected.
    const rejectedByKey = new Map<string, Config>();
    const isDefined = new Set<string>();
    const repetitions: Problem[] = [];
    const goodConfigs: Config[] = [];
    for (const { configs, standIns } of contents) {
      for (const config of [...configs, ...standIns].sort((a, b) => a.source!.line - b.source!.line)) {
        const { standsFor } = config;
        const key = standsFor === undefined ? configKeyText(config) : keyTextOf(standsFor.key);
        if (standsFor === undefined) {
          if (rejectedByKey.has(key)) repetitions.push(repetition(config, rejectedByKey.get(key)!)[0]!);
          else goodConfigs.push(config);
          isDefined.add(key);
        } else if (key !== '' && !isDefined.has(key) && !rejectedByKey.has(key)) rejectedByKey.set(key, config);
      }
    }
    const valid = withoutRepetitions(goodConfigs);
    const problems = [...contents.flatMap((content) => content.problems), ...valid.problems, ...repetitions];
    const shadowed = (key: string): string | undefined =>
      isDefined.has(key) ? rejectedByKey.get(key)?.source?.file : undefined;
    const errors = problems.filter(({ severity }) => severity === 'error');
    const rejectedKeys = new Set(errors.flatMap(({ key }) => (key === undefined ? [] : configKeyText(key))));
    const unreadableFiles = new Set(errors.filter(({ key }) => key === undefined).map(({ file }) => file));
    const now = new Map(valid.configs.map((config) => [configKeyText(config), config]));
    const keptEntries = [...this.#previous].filter(
      ([key, { standsFor, source }]) =>
        standsFor === undefined &&
        !now.has(key) &&
        (rejectedKeys.has(key) || unreadableFiles.has(source!.file)) &&
        (shadowed(key) === undefined || shadowed(key) === source!.file),
    );
    for (const [key, config] of keptEntries) now.set(key, config);
    const isThere = ({ standsFor, source }: Config): boolean =>
      standsFor!.key === undefined
        ? keptEntries.some(([, { kind, source: from }]) => kind === standsFor!.kind && from?.file === source?.file)
        : now.has(configKeyText(standsFor!.key));
    const standIns = contents.flatMap((content) => content.standIns).filter((config) => !isThere(config));
    const keptStandIns = [...this.#previous.values()].filter(
      ({ standsFor, source }) => standsFor && unreadableFiles.has(source!.file),
    );
    const widest = standIns.toSorted((a, b) => Number(a.standsFor!.isScopeKnown) - Number(b.standsFor!.isScopeKnown));
    for (const config of [...widest, ...keptStandIns]) {
      const key = configKeyText(config);
      if (!now.has(key)) now.set(key, config);
    }
    const previousProblems = this.#problems;
    this.#problems = new Map(problems.map((problem) => [problemText(problem), problem.file]));
    const problemFiles = new Set(this.#problems.values());
    const previous = new ConfigSnapshot([...this.#previous.values()]);
    this.#previous = now;
    const snapshot = new ConfigSnapshot([...now.values()]);
    return {
      snapshot,
      changes: snapshot.changesSince(previous),
      version: snapshot.version,
      problemCount: problems.length,
      problems: problems.map(problemText).filter((one) => !previousProblems.has(one)),
      recovered: [...new Set(previousProblems.values())].filter((file) => !problemFiles.has(file)).sort(),
    };
  }
}

it('reading only the changed files has the same result as reading all files', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fileChange, { minLength: 1, maxLength: 3 }), { maxLength: 12 }),
      async (batches) => {
        const root = mkdtempSync(join(tmpdir(), 'chartpilot-config-property-'));
        try {
          const directory = new ConfigDirectory(root);
          const plain = new ReferenceReader();
          for (const changeSets of [[], ...batches]) {
            const paths = changeSets.flatMap((one) => one(root));
            const expected = await plain.read(root);
            const incrementalReading = await directory.read(paths);
            if (incrementalReading.outcome !== 'read') throw new Error('missing');
            expect(new Map(directory.snapshot.byKey)).toEqual(new Map(expected.snapshot.byKey));
            expect(directory.snapshot.set).toEqual(expected.snapshot.set);
            expect(incrementalReading.version).toBe(expected.version);
            expect(incrementalReading.changes).toEqual(expected.changes);
            expect(incrementalReading.problemCount).toBe(expected.problemCount);
            expect(incrementalReading.recovered).toEqual(expected.recovered);
            const messages = incrementalReading.problems.map(fullProblemText);
            const expectedTexts = expected.problems.map((one) =>
              one.replace(/:(\d+):\d+: /, ':$1: ').replace(/ \[\w+\]$/, ''),
            );
            expect(messages.map((one) => one.replace(/:(\d+): /, ': ')).sort()).toEqual(
              expectedTexts.map((one) => one.replace(/:(\d+): /, ': ')).sort(),
            );
            const { snapshot } = directory;
            const repeatedReading = await directory.read();
            expect(repeatedReading).toMatchObject({
              outcome: 'read',
              version: incrementalReading.version,
              problems: [],
              recovered: [],
            });
            expect(repeatedReading).toHaveProperty('changes', []);
            expect(new Map(directory.snapshot.byKey)).toEqual(new Map(snapshot.byKey));
          }
        } finally {
          rmSync(root, { recursive: true, force: true });
        }
      },
    ),
    { numRuns: 100 },
  );
});
