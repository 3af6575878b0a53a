/** Compares a view's accessibility tree with a stored text, which does not depend on fonts or machine. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { expect } from 'vitest';

const folder = join(import.meta.dirname, 'aria');

/** Compares a view with `test/browser/aria/NAME.yaml`; UPDATE_GOLDEN=1 writes that file. */
export async function expectAria(name: string, view: Locator): Promise<void> {
  const file = join(folder, `${name}.yaml`);
  const snapshot = `${await view.ariaSnapshot()}\n`;
  if (process.env.UPDATE_GOLDEN === '1') {
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, snapshot);
  }
  expect(existsSync(file), `${file} is missing: write it with UPDATE_GOLDEN=1`).toBe(true);
  expect(snapshot, `UPDATE_GOLDEN=1 rewrites ${name}.yaml`).toBe(readFileSync(file, 'utf8'));
}
