/** Pictures of the page for the docs: taken by every run, kept when a person asks for it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { packageRoot } from '../../src/runtime/package-root.ts';

const folder = join(packageRoot(), 'docs/pictures');
/** Text alone, with its soft edges, has more. */
const fewestColours = 50;
const restMs = 700;

/**
 * Takes `docs/pictures/NAME.png`; writes it only with UPDATE_PICTURES=1: no two machines draw the same pixels.
 *
 * @throws Error when nothing is to be seen on it
 */
export async function takePicture(name: string, of: Page | Locator): Promise<void> {
  const page = 'page' in of ? of.page() : of;
  // Until what moves (a chart that scrolls to its active state) has come to rest.
  await page.waitForTimeout(restMs);
  const picture = await of.screenshot({ animations: 'disabled' });
  const colours = await coloursOf(page, picture);
  if (colours < fewestColours) throw new Error(`${name}: nothing is to be seen, it has ${colours} colours`);
  if (process.env.UPDATE_PICTURES !== '1') return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.png`), picture);
}

async function coloursOf(page: Page, picture: Buffer): Promise<number> {
  // Not in the page itself: it may load nothing from anywhere.
  const blank = await page.context().newPage();
  try {
    return await blank.evaluate(
      (base64) => (globalThis as unknown as InPage).inPage.colours(base64),
      picture.toString('base64'),
    );
  } finally {
    await blank.close();
  }
}

interface InPage {
  readonly inPage: { colours(base64: string): Promise<number> };
}
