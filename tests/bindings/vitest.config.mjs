export default { test: { include: ['*.validation.mjs'], watch: false }, resolve: { preserveSymlinks: true } };
