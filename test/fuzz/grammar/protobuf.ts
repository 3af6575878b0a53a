/** Encoded Protobuf messages with random fields, including wrong wire types and invalid strings. */
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { Draw } from '../../random-config/draw.ts';
import { oddText } from './breaking-words.ts';
import { mutatedBytes, randomBytes } from './bytes.ts';

/** Meaningful strings by field name. */
export type KnownTexts = Readonly<Record<string, readonly string[]>>;

export function randomMessage(draw: Draw, schema: DescMessage, knownTexts: KnownTexts): Uint8Array {
  const bytes = message(draw, schema, knownTexts, 4);
  return draw.chance(0.08) ? mutatedBytes(draw, bytes) : bytes;
}

function message(draw: Draw, schema: DescMessage, knownTexts: KnownTexts, depth: number): Uint8Array {
  const writer = new BinaryWriter();
  for (const field of schema.fields) {
    if (!draw.chance(0.35)) continue;
    const repeats = field.fieldKind === 'list' || field.fieldKind === 'map' || draw.chance(0.03);
    const times = repeats ? draw.int(1, draw.chance(0.05) ? 300 : 3) : 1;
    for (let i = 0; i < times; i++) writeField(draw, writer, field, knownTexts, depth);
  }
  if (draw.chance(0.03))
    writer.tag(draw.int(1, 5_000), WireType.LengthDelimited).bytes(randomBytes(draw, draw.int(0, 20)));
  return writer.finish();
}

function writeField(draw: Draw, writer: BinaryWriter, field: DescField, knownTexts: KnownTexts, depth: number): void {
  if (draw.chance(0.02)) {
    writer.tag(field.number, WireType.Varint).uint64(BigInt(draw.int(0, 1e6)));
  } else if (field.fieldKind === 'map') {
    const entry = new BinaryWriter().tag(1, WireType.LengthDelimited).string(oddText(draw));
    if (field.mapKind === 'message')
      entry.tag(2, WireType.LengthDelimited).bytes(nestedMessage(draw, field.message, knownTexts, depth));
    writer.tag(field.number, WireType.LengthDelimited).bytes(entry.finish());
  } else if (field.message !== undefined) {
    writer.tag(field.number, WireType.LengthDelimited).bytes(nestedMessage(draw, field.message, knownTexts, depth));
  } else if (field.enum !== undefined) {
    writer.tag(field.number, WireType.Varint).int32(draw.pick([0, 1, 2, -1, 99]));
  } else {
    writeScalar(draw, writer, field, knownTexts);
  }
}

function nestedMessage(draw: Draw, schema: DescMessage, knownTexts: KnownTexts, depth: number): Uint8Array {
  return depth === 0 ? new Uint8Array() : message(draw, schema, knownTexts, depth - 1);
}

function writeScalar(draw: Draw, writer: BinaryWriter, field: DescField, knownTexts: KnownTexts): void {
  const { number } = field;
  switch (field.scalar) {
    case ScalarType.STRING: {
      const texts = knownTexts[field.name];
      const text = texts !== undefined && draw.chance(0.7) ? draw.pick(texts) : oddText(draw);
      writer
        .tag(number, WireType.LengthDelimited)
        .bytes(draw.chance(0.02) ? Buffer.from([0xff, 0xfe, 0xc0]) : Buffer.from(text));
      return;
    }
    case ScalarType.BYTES:
      writer.tag(number, WireType.LengthDelimited).bytes(randomBytes(draw, draw.int(0, 40)));
      return;
    case ScalarType.DOUBLE:
      writer.tag(number, WireType.Bit64).double(draw.pick([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e308]));
      return;
    case ScalarType.FLOAT:
      writer.tag(number, WireType.Bit32).float(draw.pick([0, -1, Number.NaN, 1e38]));
      return;
    default:
      writer.tag(number, WireType.Varint).uint64(draw.pick([0n, 1n, 2n ** 31n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n]));
  }
}
