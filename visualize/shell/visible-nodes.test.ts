import { expect, test } from 'vitest';
import { drawnText, maxDrawnChars } from './visible-nodes.ts';

test('a text is drawn with escaped invisible characters and is cut off if it is too long', () => {
  expect(drawnText('a\u202eb')).toBe('a\\u202eb');
  expect(drawnText('x'.repeat(maxDrawnChars))).toHaveLength(maxDrawnChars);
  const longText = drawnText(`${'x'.repeat(maxDrawnChars)}${'y'.repeat(1_234)}`);
  expect(longText.slice(maxDrawnChars)).toBe('… (1,234 more characters)');
});
