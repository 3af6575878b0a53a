/**
 * Writes objects as YAML. A separate module, because it is loaded on demand: in a bundle, `import()` of the package itself has only a
 * default export.
 */
export { stringify } from 'yaml';
