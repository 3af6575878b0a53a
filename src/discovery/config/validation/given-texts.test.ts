/** Reads of any path end, at most after a byte limit. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { defaultConfigLimits } from '../files/config-limits.ts';
import { maxPipeWaitMs, readGivenTexts } from './given-texts.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'chartpilot-given-'));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(directory, { recursive: true, force: true });
});

const path = (name: string): string => join(directory, name);

describe('files of a command', () => {
  it('are read up to a total limit, whatever their type', async () => {
    const limits = { ...defaultConfigLimits, maxBytes: 100_000 };
    writeFileSync(path('a'), 'x'.repeat(60_000));
    writeFileSync(path('b'), 'x'.repeat(60_000));
    const { texts, unreadable } = await readGivenTexts(['/dev/zero', path('a'), path('b')], limits);
    expect(texts.map(({ file }) => file)).toEqual([path('a')]);
    expect(unreadable).toEqual([
      expect.stringMatching(/^\/dev\/zero: has more than 100000 bytes, .*PILOT_CONFIG_MAX_BYTES/),
      expect.stringMatching(/b: has more than 40000 bytes, .*PILOT_CONFIG_MAX_BYTES/),
    ]);
  });

  it('can be pipes, which are read until their writers close them', async () => {
    execFileSync('mkfifo', [path('pipe')]);
    const writer = spawn('sh', ['-c', `exec >'${path('pipe')}'; printf a; sleep 0.2; printf b`]);
    const { texts, unreadable } = await readGivenTexts([path('pipe')], defaultConfigLimits);
    expect({ texts, unreadable }).toEqual({ texts: [{ file: path('pipe'), text: 'ab' }], unreadable: [] });
    writer.kill();
  });

  it('are reported if they are pipes without writers', async () => {
    execFileSync('mkfifo', [path('pipe')]);
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (now += maxPipeWaitMs / 4));
    const { texts, unreadable } = await readGivenTexts([path('pipe')], defaultConfigLimits);
    expect({ texts, unreadable }).toEqual({
      texts: [],
      unreadable: [`${path('pipe')}: no process wrote to this named pipe within 10 s`],
    });
  });
});

describe('directories of a command', () => {
  it('are read up to a total limit', async () => {
    for (const name of ['a.yaml', 'b.yaml', 'c.yaml']) writeFileSync(path(name), `x: ${'x'.repeat(397)}`);
    const { texts, unreadable } = await readGivenTexts([directory], { ...defaultConfigLimits, maxBytes: 1_000 });
    expect(texts).toHaveLength(2);
    expect(unreadable).toEqual([expect.stringMatching(/c\.yaml: has more than 200 bytes, /)]);
  });

  it('cause a note about files with an ignored extension', async () => {
    mkdirSync(path('sub'));
    for (const name of ['a.yaml', 'b.YAML', 'sub/c.JSON', 'd.json', '.e.json', 'README.md'])
      writeFileSync(path(name), '');
    const { texts, notes } = await readGivenTexts([directory], defaultConfigLimits);
    expect(texts.map(({ file }) => file)).toEqual([path('a.yaml'), path('d.json')]);
    expect(notes).toEqual([expect.stringContaining(`${path('b.YAML')} and 1 more are not validated`)]);
  });
});
