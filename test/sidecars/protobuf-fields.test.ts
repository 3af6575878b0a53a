import { describe, expect, test } from 'vitest';
import { bytesField, numberField, ProtobufFields, textField, textOf } from './protobuf-fields.ts';

describe('the fields of a message', () => {
  test('are returned in order with their offsets', () => {
    const message = Buffer.concat([textField(1, 'a name'), numberField(2, 300), bytesField(3, textField(2, 'inside'))]);
    const fields = new ProtobufFields(message);
    expect(fields.next()).toBe(true);
    expect([fields.field, fields.text(), fields.recordStart]).toEqual([1, 'a name', 0]);
    expect(fields.next()).toBe(true);
    expect([fields.field, fields.number]).toEqual([2, 300]);
    expect(fields.next()).toBe(true);
    expect([fields.field, textOf(fields.inner(), 2)]).toEqual([3, 'inside']);
    expect(fields.next()).toBe(false);
  });

  test('are skipped if they have a fixed width', () => {
    const message = Buffer.concat([
      Buffer.from([0x09]),
      Buffer.alloc(8),
      Buffer.from([0x15]),
      Buffer.alloc(4),
      textField(4, 'x'),
    ]);
    expect(textOf(new ProtobufFields(message), 4)).toBe('x');
  });

  test('are read if they are strings whose length takes several bytes', () => {
    const text = 'x'.repeat(70_000);
    expect(textOf(new ProtobufFields(textField(5, text)), 5)).toBe(text);
  });

  test('are rejected if they exceed their message', () => {
    const truncatedField = textField(1, 'a name').subarray(0, 4);
    expect(() => new ProtobufFields(truncatedField).next()).toThrow('field 1 ends behind its message');
  });
});
