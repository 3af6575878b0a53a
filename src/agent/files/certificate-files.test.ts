import { execFileSync } from 'node:child_process';
import { createHash, type KeyPairKeyObjectResult } from 'node:crypto';
import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createActor, setup, toPromise } from 'xstate';
import type { FilesPending } from '../../../machines/agent/protocol.ts';
import { createAuthority } from '../../../test/certs/authority.ts';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { eventuallyHolds } from '../../../test/harness/eventually.ts';
import { linesOf } from '../../../test/harness/logged-line.ts';
import { FileTurns } from '../../runtime/files/file-turns.ts';
import { createLogger } from '../../runtime/output/log.ts';
import {
  type CertificateFilesContent,
  digestDirectories,
  readCertificates,
  waitForFiles,
} from './certificate-files.ts';
import type { CertificateValidator } from './certificate-validation.ts';

function folder(): string {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  return temporary.path;
}

const sha256 = (...contents: string[]): string => createHash('sha256').update(contents.join('')).digest('hex');

describe('digest of certificate directories', () => {
  test('depends on names and contents of files, and not on their age', async () => {
    const directory = folder();
    writeFileSync(join(directory, 'tls.key'), 'key');
    writeFileSync(join(directory, 'root.pem'), 'root');
    writeFileSync(join(directory, 'tls.crt'), 'chain');
    expect(await digestDirectories([directory])).toMatchObject({
      digest: sha256('root', 'chain', 'key'),
      files: ['root.pem', 'tls.crt', 'tls.key'].map((name) => join(directory, name)),
    });
  });

  test('does not depend on missing directories, unreadable files and files of other kinds', async () => {
    const directory = folder();
    writeFileSync(join(directory, 'tls.crt'), 'chain');
    symlinkSync('nowhere', join(directory, 'broken.pem'));
    writeFileSync(join(directory, 'notes.txt'), 'text');
    mkdirSync(join(directory, 'folder.pem'));
    const { digest, files } = await digestDirectories([join(directory, 'missing'), directory]);
    expect(digest).toBe(sha256('chain'));
    expect(files).toHaveLength(1);
  });

  test('is the hash of no data if there are no files', async () => {
    expect((await digestDirectories([])).digest).toBe(sha256(''));
  });

  test('includes a directory once if it is named twice', async () => {
    const directory = folder();
    writeFileSync(join(directory, 'a.pem'), 'a');
    expect((await digestDirectories([directory, directory])).digest).toBe(sha256('a'));
  });

  test('follows the links of a Kubernetes volume, and includes each file once', async () => {
    const directory = folder();
    mkdirSync(join(directory, '..2024_01_01'));
    writeFileSync(join(directory, '..2024_01_01', 'tls.crt'), 'one');
    symlinkSync('..2024_01_01', join(directory, '..data'));
    symlinkSync('..data/tls.crt', join(directory, 'tls.crt'));
    expect((await digestDirectories([directory])).digest).toBe(sha256('one'));
    mkdirSync(join(directory, '..2024_01_02'));
    writeFileSync(join(directory, '..2024_01_02', 'tls.crt'), 'two');
    symlinkSync('..2024_01_02', join(directory, '..data_tmp'));
    renameSync(join(directory, '..data_tmp'), join(directory, '..data'));
    rmSync(join(directory, '..2024_01_01'), { recursive: true });
    expect((await digestDirectories([directory])).digest).toBe(sha256('two'));
  });
});

describe('certificate path of a special file', () => {
  /** Root can read all files. */
  const unlessRoot = process.getuid?.() === 0 ? test.skip : test;

  test('is reported without blocking', async () => {
    const directory = folder();
    mkdirSync(join(directory, 'tls.crt'));
    execFileSync('mkfifo', [join(directory, 'tls.key')]);
    symlinkSync('nowhere', join(directory, 'ca.crt'));
    symlinkSync('/dev/zero', join(directory, 'zero.pem'));
    writeFileSync(join(directory, 'large.pem'), '');
    truncateSync(join(directory, 'large.pem'), 100 * 1024 * 1024);
    const { digest, files, problems } = await digestDirectories([directory]);
    expect(problems).toEqual([
      `${directory}: ca.crt does not exist`,
      `${directory}: large.pem must have at most 4194304 bytes`,
      `${directory}: tls.crt must be a regular file, got a directory`,
      `${directory}: tls.key must be a regular file, got another kind of file`,
      `${directory}: zero.pem must be a regular file, got another kind of file`,
    ]);
    expect({ digest, files }).toEqual({ digest: sha256(''), files: [] });
  });

  unlessRoot('a file without read permission is reported', async () => {
    const directory = folder();
    writeFileSync(join(directory, 'tls.crt'), '', { mode: 0 });
    expect((await digestDirectories([directory])).problems).toEqual([
      `${directory}: tls.crt cannot be read: EACCES: permission denied`,
    ]);
  });

  test('is reported as a file, unlike a missing directory', async () => {
    const file = join(folder(), 'file');
    writeFileSync(file, '');
    expect((await digestDirectories([file, `${file}-missing`])).problems).toEqual([
      `${file}: cannot be read: ENOTDIR: not a directory`,
    ]);
  });

  test('is not read beyond the file limit', async () => {
    const directory = folder();
    for (let i = 0; i < 1_001; i++) writeFileSync(join(directory, `${i}.pem`), '-----BEGIN X-----');
    expect((await digestDirectories([directory])).problems).toContain(
      `${directory}: directory must have at most 1000 certificate files, got 1001`,
    );
  });
});

describe('check of certificate files', () => {
  const read = (
    directories: string[],
    validate: CertificateValidator,
    lines: string[] = [],
    validated = true,
    turns = new FileTurns(),
  ): Promise<CertificateFilesContent> => {
    const logic = readCertificates(validate, createLogger({ write: (line) => lines.push(line.trimEnd()) }), turns);
    return toPromise(createActor(logic, { input: { directories, judge: validated } }).start());
  };
  const withPair = (keys?: KeyPairKeyObjectResult): string => {
    const directory = folder();
    const { certificate, privateKey } = createAuthority().issue(['a'], keys);
    writeFileSync(join(directory, 'tls.crt'), certificate);
    writeFileSync(join(directory, 'tls.key'), privateKey);
    return directory;
  };
  const takesAll: CertificateValidator = async () => [];

  test("reports Envoy's message about the files, with file and PEM blocks", async () => {
    const directory = withPair();
    const validate: CertificateValidator = async ([set]) => [
      { set: set!, result: { is: 'refused', why: "error initializing configuration '': Failed to load it" } },
    ];
    expect((await read([directory], validate)).problems).toEqual([
      `Envoy rejects ${directory}/tls.crt: Failed to load it (block 1: EC prime256v1)`,
    ]);
    expect((await read([directory], takesAll)).problems).toEqual([]);
  });

  test('waits for a hanging validation, starts none after an abort, and completes when its queued validation is done', async () => {
    const directory = withPair();
    const turns = new FileTurns();
    const hung = Promise.withResolvers<void>();
    void turns.run(() => hung.promise, new AbortController().signal);
    let validated = 0;
    const validate: CertificateValidator = async () => {
      validated++;
      return [];
    };
    const logic = readCertificates(validate, createLogger({ write: () => {} }), turns);
    const stoppedActor = createActor(logic, { input: { directories: [directory], judge: true } }).start();
    stoppedActor.stop();
    const pendingRead = read([directory], validate, [], true, turns);
    await sleep(50);
    expect(validated).toBe(0);
    hung.resolve();
    expect((await pendingRead).files).toHaveLength(2);
    expect(validated).toBe(1);
  });

  test('reads no more files after an abort', async () => {
    const directory = withPair();
    await expect(digestDirectories([directory], AbortSignal.abort())).rejects.toThrow('aborted');
  });

  test('reports a missing validation rather than a problem of the files', async () => {
    const directory = withPair();
    const none: CertificateValidator = async ([set]) => [{ set: set!, result: { is: 'not known', why: 'no time' } }];
    expect(await read([directory], none)).toMatchObject({ problems: [], notValidated: 'no time' });
    const fails: CertificateValidator = async () => {
      throw new Error('EMFILE');
    };
    expect(await read([directory], fails)).toMatchObject({ problems: [], notValidated: 'EMFILE' });
  });

  test('does not validate invalid files or files of a first start, and warns about them', async () => {
    const directory = withPair();
    rmSync(join(directory, 'tls.key'));
    const validate: CertificateValidator = async () => {
      throw new Error('must not be asked');
    };
    const lines: string[] = [];
    const content = await read([directory], validate, lines);
    expect(content.problems).toEqual([`${directory}: tls.key is missing beside tls.crt`]);
    expect(content).toMatchObject({ code: 'PRIVATE_KEY_INVALID' });
    expect(content.notValidated).toBeUndefined();
    expect(await read([directory], validate, lines, false)).toEqual(content);
    expect(
      linesOf(lines, 'certificates.invalid', { code: 'PRIVATE_KEY_INVALID', reason: /tls\.key is missing/ }),
    ).toHaveLength(1);
  });

  test('restarts if files change, so that it validates the files that were read', async () => {
    const directory = withPair();
    let validated = 0;
    const changing =
      (times: number): CertificateValidator =>
      async () => {
        if (validated++ < times) appendFileSync(join(directory, 'tls.crt'), ' ');
        return [];
      };
    const changedOnce = await read([directory], changing(1));
    expect(changedOnce.problems).toEqual([]);
    expect(validated).toBe(2);
    expect(changedOnce.digest).toBe((await digestDirectories([directory])).digest);
    const alwaysChanging = await read([directory], changing(Number.POSITIVE_INFINITY));
    expect(alwaysChanging.problems).toEqual(['certificate files keep changing while they are read']);
  });
});

describe('watch for missing certificate files', () => {
  /** Starts the actor in a machine that records its events. */
  function wait(files: string[]): { reports: Omit<FilesPending, 'type'>[]; stop: () => void } {
    const reports: Omit<FilesPending, 'type'>[] = [];
    const parent = setup({
      types: { events: {} as FilesPending },
      actors: { wait: waitForFiles(new FileTurns()) },
      actions: { note: ({ event: { missing, unreachable } }) => void reports.push({ missing, unreachable }) },
    }).createMachine({ invoke: { src: 'wait', input: { files } }, on: { 'files.pending': { actions: 'note' } } });
    const actor = createActor(parent).start();
    onTestFinished(() => void actor.stop());
    return { reports, stop: () => void actor.stop() };
  }

  test('reports missing files immediately, and after each change', async () => {
    const directory = folder();
    const [one, secondDirectory] = [join(directory, 'one'), join(directory, 'two')];
    writeFileSync(one, '');
    const { reports } = wait([one, secondDirectory]);
    await eventuallyHolds(() => expect(reports).toEqual([{ missing: [secondDirectory], unreachable: [] }]));
    rmSync(one);
    writeFileSync(secondDirectory, '');
    await eventuallyHolds(() => expect(reports.at(-1)).toEqual({ missing: [one], unreachable: [] }));
    writeFileSync(one, '');
    await eventuallyHolds(() => expect(reports.at(-1)).toEqual({ missing: [], unreachable: [] }));
  });

  test('reports no missing file if none is required', async () => {
    const { reports } = wait([]);
    await eventuallyHolds(() => expect(reports).toEqual([{ missing: [], unreachable: [] }]));
  });

  test('reports an unreadable file separately, with the reason', async () => {
    const directory = folder();
    writeFileSync(join(directory, 'file'), '');
    const invalidDirectory = join(directory, 'file', 'below');
    const { reports } = wait([invalidDirectory]);
    const unreachable = [`${invalidDirectory}: ENOTDIR: not a directory`];
    await eventuallyHolds(() => expect(reports).toEqual([{ missing: [], unreachable }]));
  });

  test('reports nothing after it stops', async () => {
    const file = join(folder(), 'file');
    const { reports, stop } = wait([file]);
    await eventuallyHolds(() => expect(reports).toHaveLength(1));
    stop();
    writeFileSync(file, '');
    await sleep(250);
    expect(reports).toHaveLength(1);
  });
});
