import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { SettingsReading } from '../../../../machines/discovery/config/mesh-config.machine.ts';
import { problemText } from '../../../model/config/problem.ts';
import { defaultMeshConfig } from '../../../model/mesh/mesh-config.ts';
import { SettingsFiles } from './settings-files.ts';

let root: string;
let file: string;
let warnings: string[];
let files: SettingsFiles;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-settings-'));
  file = join(root, 'mesh');
  warnings = [];
  files = new SettingsFiles((problem) => warnings.push(problemText(problem)));
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function readText(text: string): SettingsReading {
  writeFileSync(file, text);
  return files.read('mesh', file);
}

it('settings have their defaults until a version of the file is adopted', () => {
  expect(files.mesh).toBe(defaultMeshConfig);
  const settingsReading = readText('connectTimeout: 3s');
  expect(files.mesh).toBe(defaultMeshConfig);
  files.activate('mesh', (settingsReading as { version: string }).version);
  expect(files.mesh.connectTimeoutMs).toBe(3_000);
});

it('settings with equal values have equal versions, however they are written', () => {
  const first = readText('connectTimeout: 3s\ntrustDomain: example.com');
  expect(readText('# a comment\ntrustDomain: "example.com"\nconnectTimeout: 3000ms')).toEqual(first);
  expect(readText('connectTimeout: 4s')).not.toEqual(first);
});

it('settings from an empty file have the version of the defaults', () => {
  const emptySettings = readText('') as { version: string };
  rmSync(file);
  expect(files.read('mesh', file)).toEqual({ outcome: 'absent', defaults: emptySettings.version });
});

it('settings errors are each reported with their location', () => {
  expect(readText('connectTimeout: 3s\nprotocolDetectionTimeout: soon')).toMatchObject({
    outcome: 'invalid',
    problems: [{ place: { file, line: 2 }, field: 'protocolDetectionTimeout' }],
  });
  expect(readText('connectTimeout: [')).toMatchObject({ outcome: 'invalid', problems: [{ place: { file } }] });
  expect(files.read('mesh', root)).toMatchObject({ outcome: 'invalid', problems: [{ place: { file: root } }] });
});

it('settings fields without effect cause one warning each', () => {
  expect(readText('connectTimeouts: 3s')).toMatchObject({ outcome: 'valid' });
  readText('connectTimeouts: 3s');
  expect(warnings).toEqual([expect.stringContaining('connectTimeouts')]);
});

it('mesh networks are read from their file', () => {
  writeFileSync(
    file,
    'networks:\n  here:\n    endpoints: [{fromCidr: 10.0.0.0/8}]\n    gateways: [{address: 1.1.1.1, port: 15443}]',
  );
  const networksReading = files.read('networks', file);
  files.activate('networks', (networksReading as { version: string }).version);
  expect(files.networks.networks.here?.gateways).toMatchObject([{ address: '1.1.1.1', port: 15443 }]);
});
