# SPDX-License-Identifier: Apache-2.0
"""toolkit_matrix.py without a download: its pins, and the folder that it makes of packages."""
import pathlib
import re
import tempfile
import unittest

import toolkit_matrix

HERE = pathlib.Path(__file__).resolve().parent
README = (HERE.parents[2] / "kernels/README.md").read_text()


def write(path, text="", mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


class Pins(unittest.TestCase):
    def test_every_package_has_one_version_of_its_toolkit(self):
        for toolkit in toolkit_matrix.TOOLKITS:
            for name, version in toolkit.packages.items():
                self.assertRegex(version, r"^\d+(\.\d+)+(\.post\d+)?$", name)
                if re.search("nvcc|runtime|crt|nvvm", name):
                    self.assertTrue(version.startswith(toolkit.version + "."), f"{name} {version} is not of CUDA {toolkit.version}")
                if name.endswith(("-cu12", "-cu13")):
                    self.assertEqual(name[-2:], toolkit.version[:2], f"{name} belongs to another CUDA than {toolkit.version}")

    def test_packages_of_12_bring_no_front_end(self):
        for toolkit in toolkit_matrix.TOOLKITS:
            self.assertEqual(bool(toolkit.debian), toolkit.version.startswith("12."), toolkit.version)

    def test_the_readme_has_a_row_for_each(self):
        for toolkit in toolkit_matrix.TOOLKITS:
            self.assertTrue(f"\n| {toolkit.version} |" in README, toolkit.version)


class Layout(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name).resolve()
        self.top = self.folder / "toolkit"

    def wheel(self, path, text="", mode=0o644):
        write(self.folder / "wheels/nvidia" / path, text, mode)

    def debian(self):
        """As Debian has it: nvcc in a folder of its own, links to a compiler and to a profile that are not there."""
        root = self.folder / "root"
        programs = root / "usr/lib/nvidia-cuda-toolkit/bin"
        for name in ("nvcc", "cicc", "g++", "crt/link.stub"):
            write(programs / name, "debian's", 0o755)
        (programs / "nvcc.profile").symlink_to("/etc/no-such-profile")
        for name in ("cudafe++", "fatbinary", "ptxas", "nvlink", "bin2c", "__nvcc_device_query"):
            write(root / "usr/bin" / name, "debian's", 0o755)
        return root

    def test_of_a_whole_compiler_in_packages(self):
        self.wheel("cu13/bin/nvcc", "the wheel's", 0o755)
        self.wheel("cu13/bin/nvcc.profile", "the wheel's")
        self.wheel("cu13/include/cuda.h")
        self.wheel("cu13/lib/libcudart.so.13")
        self.wheel("cu13/lib/libcudart_static.a", "an archive")
        self.wheel("cu13/nvvm/bin/cicc", "", 0o755)
        self.wheel("cudnn/include/cudnn.h")
        self.wheel("cudnn/lib/libcudnn.so.9")
        self.wheel("cudnn/lib/__init__.py")
        toolkit_matrix.lay_out(self.folder / "wheels", None, self.top)
        self.assertFalse((self.top / "bin/nvcc").is_symlink())
        self.assertEqual((self.top / "bin/nvcc.profile").read_text(), "the wheel's")
        for name in ("include/cuda.h", "include/cudnn.h", "nvvm/bin/cicc", "lib64/libcudart.so", "lib64/libcudnn.so", "lib/libcudnn.so.9"):
            self.assertTrue((self.top / name).exists(), name)
        self.assertEqual((self.top / "lib64/libcudart_static.a").read_text(), "an archive")
        self.assertFalse((self.top / "lib64/__init__.py").exists())

    def test_of_a_front_end_from_debian(self):
        self.wheel("cuda_nvcc/bin/ptxas", "the wheel's", 0o755)
        self.wheel("cuda_nvcc/nvvm/libdevice/libdevice.10.bc")
        self.wheel("cuda_runtime/lib/libcudart.so.12")
        self.wheel("cuda_runtime/lib/libcudadevrt.a")
        toolkit_matrix.lay_out(self.folder / "wheels", self.debian(), self.top)
        self.assertEqual((self.top / "bin/ptxas").read_text(), "the wheel's")
        self.assertEqual((self.top / "bin/fatbinary").read_text(), "debian's")
        self.assertEqual((self.top / "bin/nvcc.profile").read_text(), toolkit_matrix.PROFILE)
        self.assertTrue((self.top / "nvvm/bin/cicc").exists())
        self.assertTrue((self.top / "bin/crt/link.stub").exists())
        for name in ("bin/g++", "lib64/libcudadevrt.a"):
            self.assertFalse((self.top / name).exists(), name)
        # These packages hold no static runtime.
        self.assertEqual((self.top / "lib64/libcudart_static.a").read_text(), f"INPUT({self.top}/lib64/libcudart.so.12)\n")


class Table(unittest.TestCase):
    def test_tells_why_a_build_was_refused(self):
        def refused():
            raise RuntimeError("meson setup ended with 1:\nProgram git found\nkernels/cuda/meson.build:30:6: ERROR: Problem encountered: CUDA 12.4.131 is too old")

        self.assertEqual(toolkit_matrix.attempt(refused), "refused: CUDA 12.4.131 is too old")
        self.assertEqual(toolkit_matrix.attempt(lambda: None), "builds")

    def test_has_its_date_and_a_row_for_each_toolkit(self):
        text = toolkit_matrix.table_of([{"toolkit": "12.4", "backend": "builds"}, {"toolkit": "13.5", "backend": "refused"}], "2026-11-23")
        self.assertEqual(text.splitlines()[0], "# CUDA toolkits, 2026-11-23")
        self.assertEqual(text.splitlines()[-1], "| 13.5 | refused |")


if __name__ == "__main__":
    unittest.main()
