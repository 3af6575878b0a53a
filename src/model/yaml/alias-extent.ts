import { maxNesting } from './yaml-fast.ts';

export const maxAliasedValues = 100_000;

interface Extent {
  readonly values: number;
  readonly levels: number;
}

const scalarExtent: Extent = { values: 1, levels: 0 };

/**
 * The limits apply to the value with all aliases expanded.
 * @param value must not contain cycles
 */
export function aliasViolation(value: unknown): string | undefined {
  const { values, levels } = extentOf(value, new Map());
  if (levels > maxNesting) return `nested deeper than ${maxNesting} levels when aliases are expanded`;
  return values > maxAliasedValues
    ? `aliases expand to more than ${maxAliasedValues} values in total: use fewer aliases, or divide the document`
    : undefined;
}

function extentOf(value: unknown, extents: Map<object, Extent>): Extent {
  if (typeof value !== 'object' || value === null) return scalarExtent;
  const cachedExtent = extents.get(value);
  if (cachedExtent !== undefined) return cachedExtent;
  let [values, levels] = [1, 0];
  for (const nestedValue of Object.values(value)) {
    const nestedExtent = extentOf(nestedValue, extents);
    values += nestedExtent.values;
    levels = Math.max(levels, nestedExtent.levels);
  }
  const extent = { values, levels: levels + 1 };
  extents.set(value, extent);
  return extent;
}
