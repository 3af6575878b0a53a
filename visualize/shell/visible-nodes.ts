import { options, type VNode } from 'preact';
import { visibleText } from '../../src/runtime/visible-text.ts';

/** Attributes that users read or screen readers speak. Others (`data-actor`, `href`, `value`) keep their exact value. */
const escapedAttributes = ['title', 'alt', 'placeholder', 'aria-label', 'aria-description', 'aria-valuetext'];

/** In UTF-16 code units. Names and messages of a trace may be as long as its lines. */
export const maxDrawnChars = 20_000;

/** Starts to escape control and invisible characters in every drawn text, because traces, file names and error messages are untrusted. */
export function escapeDrawnText(): void {
  const previous = options.vnode;
  options.vnode = (vnode) => {
    escapeNode(vnode as VNode<unknown>);
    previous?.(vnode);
  };
}

function escapeNode(vnode: VNode<unknown>): void {
  const { type, props } = vnode;
  // The props of a text node are a string.
  if (typeof props === 'string') Object.assign(vnode, { props: drawnText(props) });
  if (typeof type !== 'string') return;
  const attributes = props as Record<string, unknown>;
  for (const name of escapedAttributes) {
    const value = attributes[name];
    if (typeof value === 'string') attributes[name] = drawnText(value);
  }
}

export function drawnText(text: string): string {
  if (text.length <= maxDrawnChars) return visibleText(text);
  const omittedChars = text.length - maxDrawnChars;
  return `${visibleText(text.slice(0, maxDrawnChars))}… (${omittedChars.toLocaleString('en')} more characters)`;
}
