// Rows with a name: one line for each group, one for each that is wrong, a count at the end.
let passed = 0;
let failed = 0;

/** Throws where it does not hold. */
export function must(holds, message) {
  if (!holds) throw new Error(message);
}

/** group NAME, [[row, run], ...]: run may return a word to say. */
export function group(name, rows) {
  const before = failed;
  for (const [row, run] of rows) {
    try {
      run();
      passed += 1;
    } catch (error) {
      failed += 1;
      console.log(`  WRONG ${name}: ${row}: ${error.message}`);
    }
  }
  if (rows.length === 0) {
    failed += 1;
    console.log(`  WRONG ${name}: no rows`);
  }
  if (failed === before) console.log(`  ok    ${name} (${rows.length})`);
}

export function end() {
  console.log(`helm: ${passed} passed, ${failed} failed`);
  process.exitCode = failed ? 1 : 0;
}
