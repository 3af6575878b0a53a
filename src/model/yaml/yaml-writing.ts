/** Writes objects as YAML. A separate module for loading on demand: in a bundle, `import()` of the package itself has only a default export. */
export { stringify } from 'yaml';
