/** A view as a screen reader has it, held against a text that people review: fonts and machines do not change it. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { expect } from 'vitest';

const folder = join(import.meta.dirname, 'aria');

/** Holds a view against `test/browser/aria/NAME.yaml`; UPDATE_GOLDEN=1 writes that. */
export async function expectAria(name: string, view: Locator): Promise<void> {
  const file = join(folder, `${name}.yaml`);
  const seen = `${await view.ariaSnapshot()}\n`;
  if (process.env.UPDATE_GOLDEN === '1') {
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, seen);
  }
  expect(existsSync(file), `${file} is missing: write it with UPDATE_GOLDEN=1`).toBe(true);
  expect(seen, `UPDATE_GOLDEN=1 rewrites ${name}.yaml`).toBe(readFileSync(file, 'utf8'));
}
