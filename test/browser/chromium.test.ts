import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findChromium, requireChromium } from './chromium.ts';
import { findFirefox } from './firefox.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-chromium-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function program(name: string): string {
  const path = join(folder, name);
  writeFileSync(path, '#!/bin/sh\n');
  chmodSync(path, 0o755);
  return path;
}

test('Chromium is found by each of its names, in order of preference', () => {
  const chrome = program('google-chrome');
  expect(findChromium({ PATH: `/nowhere:${folder}` })).toBe(chrome);
  const chromium = program('chromium');
  expect(findChromium({ PATH: `/nowhere:${folder}` })).toBe(chromium);
  const shell = program('chromium-headless-shell');
  expect(findChromium({ PATH: `/nowhere:${folder}` })).toBe(shell);
});

test('Firefox is found by its names or by $FIREFOX', () => {
  const esr = program('firefox-esr');
  expect(findFirefox({ PATH: folder })).toBe(esr);
  expect(() => findFirefox({ FIREFOX: join(folder, 'absent'), PATH: folder })).toThrow(/no program that can be run/);
});

test('a browser in a variable has precedence, and causes an error if it cannot be executed', () => {
  program('chromium');
  const ownChromium = program('my-chromium');
  expect(findChromium({ CHROMIUM: ownChromium, PATH: folder })).toBe(ownChromium);
  expect(() => findChromium({ CHROMIUM: join(folder, 'absent'), PATH: folder })).toThrow(/no program that can be run/);
});

test('a test without Chromium fails with the command that installs it', () => {
  expect(findChromium({ PATH: folder })).toBeUndefined();
  expect(() => requireChromium({ PATH: folder })).toThrow(
    expect.objectContaining({ hint: expect.stringContaining('npm run chromium') }),
  );
});
