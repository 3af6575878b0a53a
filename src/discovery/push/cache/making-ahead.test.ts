import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { ClusterSchema } from '../../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { type AheadPart, Encodable } from '../../../networking/messages/resource.ts';
import { MakingAhead } from './making-ahead.ts';

/** Asks for so many parts with each piece. @param msOfPart how long each of them takes */
function partsByPiece(parts: readonly (AheadPart | undefined)[], msOfPart = 0): number[] {
  let asked = 0;
  const counted = (function* () {
    for (const part of parts) {
      asked++;
      yield part;
    }
  })();
  const now = (): number => asked * msOfPart;
  const making = new MakingAhead(counted, () => {}, now);
  const pieces: number[] = [];
  for (let more = true; more; ) {
    const before = asked;
    more = making.piece();
    pieces.push(asked - before);
  }
  return pieces;
}

const part = new Encodable(ClusterSchema, create(ClusterSchema));

it('makes some parts at a time', () => {
  expect(partsByPiece(Array.from({ length: 20 }, () => part))).toEqual([8, 8, 4]);
});

it('rests wherever what makes the parts says so: what it has done may have taken long', () => {
  expect(partsByPiece([undefined, undefined, part, part, undefined, part])).toEqual([1, 1, 3, 1]);
});

it('makes fewer parts at a time when one of them takes long', () => {
  expect(partsByPiece([part, part, part], 3)).toEqual([1, 1, 1, 0]);
  expect(partsByPiece([part, part, part, part], 1)).toEqual([3, 1]);
});
