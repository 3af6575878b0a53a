/** A picture is parsed once, then only its highlights change. */

export interface DrawnStateBox {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Picture {
  readonly svg: SVGSVGElement;
  readonly width: number;
  readonly height: number;
  readonly boxes: ReadonlyMap<number, DrawnStateBox>;
}

const pictures = new Map<string, Picture>();
const adoptedIds = new Set<string>();

/** The style is added to the page, because the content security policy may block `<style>` elements in a picture. */
export function pictureOf(text: string): Picture {
  const cachedPicture = pictures.get(text);
  if (cachedPicture !== undefined) return cachedPicture;
  const svg = document.importNode(
    new DOMParser().parseFromString(text, 'image/svg+xml').documentElement as unknown as SVGSVGElement,
    true,
  );
  for (const style of svg.querySelectorAll('style')) {
    adopt(style.textContent ?? '');
    style.remove();
  }
  const [, , width = 0, height = 0] = (svg.getAttribute('viewBox') ?? '').split(/[ ,]+/).map(Number);
  const boxes = new Map<number, DrawnStateBox>();
  for (const state of svg.querySelectorAll<SVGGElement>('g.state')) {
    const rect = state.querySelector('rect');
    if (rect !== null) boxes.set(Number(state.dataset.state), boxOf(rect));
  }
  const picture = { svg, width, height, boxes };
  pictures.set(text, picture);
  return picture;
}

/** Adds the style of a complete picture to the page, because brief pictures have no style. */
export function adoptStyleOf(text: string): void {
  const [, css] = /<style>([^<]*)<\/style>/.exec(text) ?? [];
  if (css !== undefined) adopt(css.replaceAll('&gt;', '>').replaceAll('&amp;', '&'));
}

function boxOf(rect: SVGRectElement): DrawnStateBox {
  const [x, y, width, height] = ['x', 'y', 'width', 'height'].map((name) => Number(rect.getAttribute(name)));
  return { x: x!, y: y!, width: width!, height: height! };
}

function adopt(css: string): void {
  if (adoptedIds.has(css)) return;
  adoptedIds.add(css);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}
