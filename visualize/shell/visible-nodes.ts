import { options, type VNode } from 'preact';
import { visibleText } from '../../src/runtime/visible-text.ts';

/** Attributes that a person reads or hears. Others (`data-actor`, `href`, `value`) keep their exact value. */
const readAttributes = ['title', 'alt', 'placeholder', 'aria-label', 'aria-description', 'aria-valuetext'];

/** UTF-16 code units of one text on the page: names and messages of a trace may be as long as its lines. */
export const maxDrawnChars = 20_000;

/**
 * Escapes control and invisible characters in every text that the page draws from now on: traces, names of files and reasons
 * come from others. Longer texts than {@link maxDrawnChars} are cut. Views need not do it, and a new
 * view cannot forget it.
 */
export function escapeDrawnText(): void {
  const previous = options.vnode;
  options.vnode = (vnode) => {
    escapeNode(vnode as VNode<unknown>);
    previous?.(vnode);
  };
}

function escapeNode(vnode: VNode<unknown>): void {
  const { type, props } = vnode;
  // A text node's text is in the place of its properties.
  if (typeof props === 'string') Object.assign(vnode, { props: drawnText(props) });
  if (typeof type !== 'string') return;
  const attributes = props as Record<string, unknown>;
  for (const name of readAttributes) {
    const value = attributes[name];
    if (typeof value === 'string') attributes[name] = drawnText(value);
  }
}

/** A text as it is drawn. */
export function drawnText(text: string): string {
  if (text.length <= maxDrawnChars) return visibleText(text);
  const rest = text.length - maxDrawnChars;
  return `${visibleText(text.slice(0, maxDrawnChars))}… (${rest.toLocaleString('en')} more characters)`;
}
