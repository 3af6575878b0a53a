/** A similar name has at most two edits, and fewer edits than half the letters. */
export function nearestName<Name extends string>(writtenName: string, names: Iterable<Name>): Name | undefined {
  let nearestCandidate: Name | undefined;
  let bestDistance = Math.min(2, Math.floor(writtenName.length / 2)) + 1;
  for (const name of names) {
    if (Math.abs(name.length - writtenName.length) >= bestDistance) continue;
    const distance = editDistance(writtenName.toLowerCase(), name.toLowerCase());
    if (distance < bestDistance) [nearestCandidate, bestDistance] = [name, distance];
  }
  return nearestCandidate;
}

/** Computes the optimal string alignment distance. */
function editDistance(a: string, b: string): number {
  let rowBeforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaceCost = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapCost = isSwapped ? rowBeforePrevious[j - 2]! + 1 : replaceCost;
      row.push(Math.min(replaceCost, swapCost, previous[j]! + 1, row[j - 1]! + 1));
    }
    [rowBeforePrevious, previous] = [previous, row];
  }
  return previous[b.length]!;
}
