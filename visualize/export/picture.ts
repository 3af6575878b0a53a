export interface StandaloneSvg {
  readonly text: string;
  readonly width: number;
  readonly height: number;
}

const properties = [
  'fill',
  'fill-opacity',
  'stroke',
  'stroke-width',
  'stroke-dasharray',
  'stroke-linejoin',
  'paint-order',
  'opacity',
  'font-family',
  'font-size',
  'font-weight',
  'text-anchor',
  'text-decoration-line',
  'transform',
  'transform-box',
  'transform-origin',
] as const;
/** Maximum side length in pixels of a canvas that all browsers support. */
const maxSide = 16_000;

export function standaloneSvg(shownSvg: SVGSVGElement): StandaloneSvg {
  const copy = shownSvg.cloneNode(true) as SVGSVGElement;
  const originals = shownSvg.querySelectorAll<SVGElement>('*');
  const copies = copy.querySelectorAll<SVGElement>('*');
  for (const [i, originalElement] of originals.entries()) inlineStyle(originalElement, copies[i]!);
  const [, , width = 0, height = 0] = (copy.getAttribute('viewBox') ?? '').split(/[ ,]+/).map(Number);
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('width', String(width));
  copy.setAttribute('height', String(height));
  for (const token of copy.querySelectorAll('.token')) token.remove();
  return { text: `${new XMLSerializer().serializeToString(copy)}\n`, width, height };
}

function inlineStyle(originalElement: SVGElement, copy: SVGElement): void {
  if (originalElement instanceof SVGTitleElement) return;
  const computedStyle = getComputedStyle(originalElement);
  copy.removeAttribute('class');
  const style = properties
    .map((name) => [name, computedStyle.getPropertyValue(name)] as const)
    .filter(([name, value]) => value !== '' && value !== initialValues[name])
    .map(([name, value]) => `${name}:${value}`);
  copy.setAttribute('style', style.join(';'));
}

const initialValues: Partial<Record<(typeof properties)[number], string>> = {
  'fill-opacity': '1',
  stroke: 'none',
  'stroke-width': '1px',
  'stroke-dasharray': 'none',
  'stroke-linejoin': 'miter',
  'paint-order': 'normal',
  opacity: '1',
  'font-weight': '400',
  'text-anchor': 'start',
  'text-decoration-line': 'none',
  transform: 'none',
  'transform-box': 'view-box',
};

/** Twice the page's resolution, unless that exceeds the maximum canvas. */
export async function pngOf({ text, width, height }: StandaloneSvg): Promise<Blob> {
  const scale = Math.min(2, maxSide / Math.max(width, height));
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => {
      if (blob === null) reject(new Error('the browser cannot render an image of this size'));
      else resolve(blob);
    }, 'image/png');
  });
}
