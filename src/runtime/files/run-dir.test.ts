import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { asOtherUser } from '../../../test/harness/other-user.ts';
import { ensureRunDir } from './run-dir.ts';

test('a run directory that cannot exist is rejected immediately without retries', () => {
  expect(() => ensureRunDir('/proc/x/y')).toThrow(/run directory \/proc\/x\/y: ENOENT/);
});

/** Uid of the victim (issue 33, item 13). */
const victim = 65_533;

interface Chosen {
  readonly directories: readonly string[];
  readonly warnings: string;
}

/** Directories that programs of the victim choose when they start at the same time. */
async function chosenBy(temporary: string, programs: number, cwd = '/'): Promise<Chosen> {
  const script = `
    const { chooseRunDir, ensureRunDir } = await import(${JSON.stringify(join(import.meta.dirname, 'run-dir.ts'))});
    const directory = chooseRunDir(undefined);
    chooseRunDir(undefined);
    ensureRunDir(directory);
    console.log(directory);`;
  const options = {
    uid: victim,
    gid: victim,
    cwd,
    env: { TMPDIR: temporary },
    extendEnv: false,
    all: true,
  } as const;
  const processResults = await Promise.all(
    Array.from({ length: programs }, () => execa(process.execPath, ['--input-type=module', '-e', script], options)),
  );
  return { directories: processResults.map(({ stdout }) => stdout), warnings: processResults[0]!.stderr };
}

function sharedTemporary(): string {
  const root = mkdtempSync(join(tmpdir(), 'shared-'));
  chmodSync(root, 0o1777);
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return root;
}

test.each([
  ['a directory', 'mkdir -m 777'],
  ['a file', 'touch'],
  ['a FIFO', 'mkfifo -m 666'],
  ['a link to a directory of the victim', 'ln -s ../victims'],
])('the program starts despite %s of another user at the usual path of the run directory', async (_, create) => {
  const root = sharedTemporary();
  const defaultRunDir = join(root, `chartpilot-${victim}`);
  await asOtherUser(`cd ${root} && ${create} ${defaultRunDir}`);
  const { directories, warnings } = await chosenBy(root, 2);
  expect(new Set(directories)).toHaveLength(1);
  const [chosenDirectory] = directories;
  expect(chosenDirectory).toMatch(new RegExp(`^${defaultRunDir}-[A-Za-z0-9]{6}$`));
  const stats = lstatSync(chosenDirectory!);
  expect([stats.uid, stats.mode & 0o777]).toEqual([victim, 0o700]);
  expect(warnings.match(/is not usable/g)).toHaveLength(1);
  expect(await chosenBy(root, 1)).toMatchObject({ directories: [chosenDirectory] });
});

test('fallback run directories of another user are skipped', async () => {
  const root = sharedTemporary();
  const defaultRunDir = join(root, `chartpilot-${victim}`);
  await asOtherUser(
    `mkdir -m 777 ${defaultRunDir} ${defaultRunDir}-000000 ${defaultRunDir}-AAAAAA; ln -s / ${defaultRunDir}-BBBBBB`,
  );
  const { directories } = await chosenBy(root, 1);
  expect(lstatSync(directories[0]!).uid).toBe(victim);
});

test('the usual run directory is used without a warning if its name is free', async () => {
  const root = sharedTemporary();
  expect(await chosenBy(root, 1)).toEqual({ directories: [join(root, `chartpilot-${victim}`)], warnings: '' });
  expect(readdirSync(root)).toEqual([`chartpilot-${victim}`]);
});

test('the run directory is below the configuration path if only that is writable', async () => {
  const root = sharedTemporary();
  const configPath = join(root, 'etc/istio/proxy');
  mkdirSync(configPath, { recursive: true });
  chmodSync(configPath, 0o777);
  const { directories, warnings } = await chosenBy('/proc', 2, root);
  expect({ directories, warnings }).toEqual({
    directories: Array(2).fill(join(configPath, `chartpilot-${victim}`)),
    warnings: '',
  });
});
