/** Takes pictures of the page for the docs. Every run takes them, but writes them only on request. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { packageRoot } from '../../src/runtime/package-root.ts';

const folder = join(packageRoot(), 'docs/pictures');
/** Antialiased text has more colours than this. */
const minColours = 50;
const restMs = 700;

/**
 * A picture of the page, or of a part.
 *
 * @throws Error if the picture is empty
 */
export async function pictureOf(name: string, subject: Page | Locator): Promise<Buffer> {
  const page = 'page' in subject ? subject.page() : subject;
  // Waits until animations end, such as a chart that scrolls to its active state.
  await page.waitForTimeout(restMs);
  const picture = await subject.screenshot({ animations: 'disabled' });
  const colours = await coloursOf(page, picture);
  if (colours < minColours) throw new Error(`${name}: nothing is to be seen, it has ${colours} colours`);
  return picture;
}

/** Takes `docs/pictures/NAME.png` like {@link pictureOf}. Writes it only with UPDATE_PICTURES=1, because pixels differ between machines. */
export async function takePicture(name: string, subject: Page | Locator): Promise<void> {
  const picture = await pictureOf(name, subject);
  if (process.env.UPDATE_PICTURES !== '1') return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.png`), picture);
}

/** Maximum size of a picture of a view; a page of the docs has ten of them. */
const maxPictureBytes = 150_000;
const quality = 0.86;

/**
 * Takes `docs/pictures/NAME.webp` of the complete window. Writes it only with UPDATE_PICTURES=1.
 *
 * @throws Error if the picture is empty, or if the stored one is missing, has another size or is too large
 */
export async function takeView(name: string, page: Page): Promise<void> {
  await page.waitForTimeout(restMs);
  const picture = await page.screenshot({ animations: 'disabled' });
  const colours = await coloursOf(page, picture);
  if (colours < minColours) throw new Error(`${name}: nothing is to be seen, it has ${colours} colours`);
  const webpPicture = await asWebp(page, picture);
  const file = join(folder, `${name}.webp`);
  if (process.env.UPDATE_PICTURES === '1') writeFileSync(file, Buffer.from(webpPicture.base64, 'base64'));
  if (!existsSync(file)) throw new Error(`${file} is missing: run with UPDATE_PICTURES=1 and look at it`);
  const keptPicture = readFileSync(file);
  const { width, height } = await asWebp(page, keptPicture);
  if (width !== webpPicture.width || height !== webpPicture.height) {
    throw new Error(`${file} has ${width} × ${height} pixels, the view ${webpPicture.width} × ${webpPicture.height}`);
  }
  if (keptPicture.length > maxPictureBytes) throw new Error(`${file} has ${keptPicture.length} bytes`);
}

async function asWebp(page: Page, picture: Buffer): Promise<{ base64: string; width: number; height: number }> {
  const blank = await page.context().newPage();
  try {
    return await blank.evaluate(
      ([base64, quality]) => (globalThis as unknown as InPage).inPage.asWebp(base64, quality),
      [picture.toString('base64'), quality] as const,
    );
  } finally {
    await blank.close();
  }
}

async function coloursOf(page: Page, picture: Buffer): Promise<number> {
  // Uses a separate page, because the debugger's page may not load other resources.
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
