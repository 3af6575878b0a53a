/** Pictures of the page for the docs: taken by every run, kept when a person asks for it. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { packageRoot } from '../../src/runtime/package-root.ts';

const folder = join(packageRoot(), 'docs/pictures');
/** Text alone, with its soft edges, has more. */
const fewestColours = 50;
const restMs = 700;

/**
 * A picture of the page, or of a part of it.
 *
 * @throws Error when nothing is to be seen on it
 */
export async function pictureOf(name: string, of: Page | Locator): Promise<Buffer> {
  const page = 'page' in of ? of.page() : of;
  // Until what moves (a chart that scrolls to its active state) has come to rest.
  await page.waitForTimeout(restMs);
  const picture = await of.screenshot({ animations: 'disabled' });
  const colours = await coloursOf(page, picture);
  if (colours < fewestColours) throw new Error(`${name}: nothing is to be seen, it has ${colours} colours`);
  return picture;
}

/** Takes `docs/pictures/NAME.png` as {@link pictureOf}; writes it only with UPDATE_PICTURES=1: no two machines draw the same pixels. */
export async function takePicture(name: string, of: Page | Locator): Promise<void> {
  const picture = await pictureOf(name, of);
  if (process.env.UPDATE_PICTURES !== '1') return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.png`), picture);
}

/** Of a view's picture; with more, a page with ten of them is long in coming. */
const mostBytes = 150_000;
const quality = 0.86;

/**
 * Takes `docs/pictures/NAME.webp`, the whole window; writes it only with UPDATE_PICTURES=1.
 *
 * @throws Error when nothing is to be seen on it, or when the one that is kept is missing, of another size or too large
 */
export async function takeView(name: string, page: Page): Promise<void> {
  await page.waitForTimeout(restMs);
  const picture = await page.screenshot({ animations: 'disabled' });
  const colours = await coloursOf(page, picture);
  if (colours < fewestColours) throw new Error(`${name}: nothing is to be seen, it has ${colours} colours`);
  const taken = await asWebp(page, picture);
  const file = join(folder, `${name}.webp`);
  if (process.env.UPDATE_PICTURES === '1') writeFileSync(file, Buffer.from(taken.base64, 'base64'));
  if (!existsSync(file)) throw new Error(`${file} is missing: run with UPDATE_PICTURES=1 and look at it`);
  const kept = readFileSync(file);
  const { width, height } = await asWebp(page, kept);
  if (width !== taken.width || height !== taken.height) {
    throw new Error(`${file} has ${width} × ${height} pixels, the view ${taken.width} × ${taken.height}`);
  }
  if (kept.length > mostBytes) throw new Error(`${file} has ${kept.length} bytes`);
}

async function asWebp(page: Page, picture: Buffer): Promise<{ base64: string; width: number; height: number }> {
  const blank = await page.context().newPage();
  try {
    return await blank.evaluate(([base64, wanted]) => (globalThis as unknown as InPage).inPage.asWebp(base64, wanted), [
      picture.toString('base64'),
      quality,
    ] as const);
  } finally {
    await blank.close();
  }
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
  readonly inPage: {
    colours(base64: string): Promise<number>;
    asWebp(base64: string, quality: number): Promise<{ base64: string; width: number; height: number }>;
  };
}
