import { options, type VNode } from 'preact';
import { visibleText } from '../../src/runtime/visible-text.ts';

/** Attributes that a person reads or hears. Others (`data-actor`, `href`, `value`) keep their exact value. */
const readAttributes = ['title', 'alt', 'placeholder', 'aria-label', 'aria-description', 'aria-valuetext'];

/**
 * Escapes control and invisible characters in every text that the page draws from now on: traces, names of files and reasons
 * come from others. Views need not do it, and a new view cannot forget it.
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
  if (typeof props === 'string') Object.assign(vnode, { props: visibleText(props) });
  if (typeof type !== 'string') return;
  const attributes = props as Record<string, unknown>;
  for (const name of readAttributes) {
    const value = attributes[name];
    if (typeof value === 'string') attributes[name] = visibleText(value);
  }
}
